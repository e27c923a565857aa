"""Chromium without a window, spoken to through a pipe (the DevTools protocol): pages are opened, clicked, looked at."""
import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile

import pytest

CHROMIUM = shutil.which('chromium') or shutil.which('google-chrome')


class Browser:
    """One page of `width` x `height` pixels. Errors of its scripts are kept in `errors`."""

    def __init__(self, width=1280, height=900):
        if not CHROMIUM:
            pytest.skip('no chromium')
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        there, ours = os.pipe(), os.pipe()

        def connect():
            # The protocol's two ends are file descriptors 3 and 4, which may be those of either now.
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 5) for fd in (there[0], ours[1])]
            os.dup2(ends[0], 3), os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe',
             '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream',
             f'--user-data-dir={self.folder.name}', f'--window-size={width},{height}', '--no-first-run'],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there[0]), os.close(ours[1])
        self.out, self.back = there[1], os.fdopen(ours[0], 'rb')
        self.count, self.errors, self.session = 0, [], None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        self.call('Runtime.enable'), self.call('DOM.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        os.close(self.out), self.back.close()
        self.folder.cleanup()

    def _message(self):
        data = bytearray()
        while (byte := self.back.read(1)) != b'\0':
            assert byte, 'chromium has ended'
            data += byte
        return json.loads(data)

    def call(self, method, **params):
        self.count += 1
        message = {'id': self.count, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while True:
            reply = self._message()
            if reply.get('method') == 'Runtime.exceptionThrown':
                self.errors.append(reply['params']['exceptionDetails'])
            if reply.get('id') == self.count:
                assert 'error' not in reply, reply
                return reply['result']

    def js(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        reply = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        assert 'exceptionDetails' not in reply, reply['exceptionDetails']
        return reply['result'].get('value')

    def open(self, path, ready='document.readyState === "complete"'):
        """Opens a file, or an address, and waits, a minute at most, for `ready`."""
        url = path if isinstance(path, str) else path.resolve().as_uri()
        self.call('Page.navigate', url=url)
        self.wait(f'location.href === {json.dumps(url)} && ({ready})')

    def wait(self, condition):
        done = self.js(f'new Promise(r => {{ let n = 0; const look = () => {{ let ok = false; try {{ ok = {condition} }} catch (e) {{}}'
                       ' if (ok || n++ > 600) r(ok); else setTimeout(look, 100) }; look() })')
        assert done, (condition, self.errors)

    def _mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def place(self, selector):
        """The middle of an element that is brought into view."""
        return self.js(f'(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: "nearest"}});'
                       ' const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()')

    def click(self, selector):
        self.drag([self.place(selector)])

    def drag(self, points):
        """Presses at the first point, moves over the others, releases at the last."""
        self._mouse('mouseMoved', *points[0])
        self._mouse('mousePressed', *points[0], button='left', clickCount=1)
        for point in points[1:]:
            self._mouse('mouseMoved', *point, button='left', buttons=1)
        self._mouse('mouseReleased', *points[-1], button='left', clickCount=1)

    def wheel(self, selector, delta):
        self._mouse('mouseWheel', *self.place(selector), deltaX=0, deltaY=delta)

    def type(self, selector, text):
        self.click(selector)
        self.call('Input.insertText', text=text)

    def choose_files(self, selector, paths):
        root = self.call('DOM.getDocument')['root']['nodeId']
        node = self.call('DOM.querySelector', nodeId=root, selector=selector)['nodeId']
        self.call('DOM.setFileInputFiles', nodeId=node, files=[str(p) for p in paths])

    def drop_files(self, selector, paths):
        x, y = self.place(selector)
        for kind in 'dragEnter', 'dragOver', 'drop':
            self.call('Input.dispatchDragEvent', type=kind, x=x, y=y, data={'items': [], 'files': [str(p) for p in paths], 'dragOperationsMask': 1})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))
