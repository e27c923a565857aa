"""Every sentence of "Errors" in docs/architecture.md is held by tests that are named here."""
import re

from conftest import ROOT

# The first words of each sentence, and the tests: Suite.name of C++ (of the tables of cases, the name that the harness
# gives), file.py::name of Python; or why a sentence promises nothing.
PROMISES = {
    'Public functions return 0 or a negative code': ['NetTest.BadParamsSayWhatAndWhere', 'NetTest.WrongCallsSaySo',
                                                     'test_errors_page.py::test_every_message_has_a_row'],
    'A bad file, shape, option or allocation failure': ['LayerTest.hostile_inputs_to_every_operator', 'NetTest.MissingWeightsAreNamed',
                                                        'OutOfMemory.IsAnErrorAndTheNextRunWorks', 'NetTest.ClearAndReload'],
    'Memory may end at any allocation': ['OutOfMemory.IsAnErrorAndTheNextRunWorks', 'ThreadPool.WhatATaskThrowsReachesTheCaller',
                                         'NoMemory.AnExtractorSaysSoInAllFunctions',
                                         'NoMemory.PublicFunctionsSaySo'],
    'Kernels are compiled without exceptions': ['Allocations.NoneInSteadyState'],
    'We took one boundary rather than': 'says why',
    'Constructors of objects with memory': ['NoMemory.ObjectsWithMemoryOfTheirOwnThrow', 'NoMemory.AnExtractorSaysSoInAllFunctions'],
    '`tests/layer` and `tests/runtime/test_out_of_memory.cpp` fail': ['OutOfMemory.IsAnErrorAndTheNextRunWorks'],
    "Exceptions of an application's layers": ['ApplicationExceptions.GoThroughToTheApplicationAndTheNetWorksBehind'],
    'A path given to a loader has to be': ['test_model_files.py::test_other_formats_are_named',
                                           'test_model_files.py::test_bytes_that_are_left_over',
                                           'MappedFile.BytesThatAreLeftOverAreAnError', 'NetTest.ModelsConcatenatedInOneFile',
                                           'test_model_files.py::test_mixed_pairs_are_refused'],
    'A thread needs 64 KB of stack': ['test_threads.cpp: on_small_stack'],
    '`log.h` has levels and a user sink': ['Log.LevelIsAThreshold', 'Log.ASinkMayLogAndReplaceItself'],
    'No exception leaves the library': ['test_install.py::test_the_library_has_no_rtti_and_applications_may',
                                        'OutOfMemory.IsAnErrorAndTheNextRunWorks'],
    'Public headers are C++11-clean': ['test_install.py::test_header_alone_as_cxx11'],
}


def sentences():
    text = (ROOT / 'docs/architecture.md').read_text()
    section = re.search(r'\n## Errors\n(.*?)\n## ', text, re.S).group(1)
    section = ' '.join(section.split())
    return re.split(r'(?<=\.) (?=[A-Z`])', section)


def exists(test):
    if '.py::' in test:
        file, name = test.split('::')
        found = [p.read_text() for p in (ROOT / 'tests').rglob(file)]
        return any(re.search(rf'^def {name}\(', text, re.M) for text in found)
    if ': ' in test:
        file, name = test.split(': ')
        return any(re.search(rf'\b{name}\(', p.read_text()) for p in (ROOT / 'tests').rglob(file))
    suite, name = test.split('.')
    pattern = re.compile(rf'^TEST(_F|_P)?\({suite}, {name}\)', re.M)
    return any(pattern.search(p.read_text()) for p in (ROOT / 'tests').rglob('*.cpp'))


def test_every_promise_has_its_tests():
    found = sentences()
    for sentence in found:
        assert any(sentence.startswith(begin) for begin in PROMISES), f'no test is named for: {sentence}'
    for begin in PROMISES:
        assert any(sentence.startswith(begin) for sentence in found), f'the page does not say any more: {begin}'


def test_the_tests_are_there():
    gone = [test for tests in PROMISES.values() if isinstance(tests, list) for test in tests if not exists(test)]
    assert not gone
