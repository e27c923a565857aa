#include "quantize/report.h"

namespace quoll {

namespace {

// The page draws what the JSON in it says; it loads nothing from anywhere.
const char kHead[] = R"HTML(<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>enginequantize</title>
<style>
:root{--fg:#1b2230;--dim:#667;--bg:#fff;--line:#dde2ea;--a:#2563eb;--b:#ea580c;--bad:#c81e1e}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#9aa3b2;--bg:#14181f;--line:#2b3340;--a:#6ea0ff;--b:#ff9a55;--bad:#ff7a7a}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}.dim{color:var(--dim)}
.cards{display:flex;flex-wrap:wrap;gap:1rem;margin:1rem 0}.card{border:1px solid var(--line);border-radius:.6rem;padding:.7rem 1rem;min-width:9rem}
.card b{display:block;font-size:1.3rem}.card span{white-space:nowrap}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid var(--line);white-space:nowrap}
th{cursor:pointer;position:sticky;top:0;background:var(--bg)}td.t,th.t{text-align:left;max-width:18rem;overflow:hidden;text-overflow:ellipsis}
tr.row{cursor:pointer}tr.bad td{color:var(--bad)}.scroll{overflow-x:auto}svg{width:100%;height:auto}svg text{fill:var(--dim);font-size:11px}#layers{font-size:.85rem}#layers th,#layers td{padding:.2rem .4rem}
@media(max-width:40rem){body{margin-top:1rem}.cards{gap:.6rem}.card{min-width:7rem;flex:1}svg{min-width:40rem}#series,#frontier{overflow-x:auto}}
</style>
<h1>Quantisation of <span id="model"></span></h1><p class="dim" id="about"></p><div class="cards" id="cards"></div>
<div id="advice"></div><h2>Outputs</h2><div class="scroll"><table id="outputs"></table></div>
<div id="frontier"></div>
<h2>Error by layer</h2><p class="dim">Signal over noise in dB, in the order of the layers: of each layer alone (blue), of the run up to it
(orange), of its weights (grey). Wheel: zoom. Double click: all.</p><div id="series"></div>
<h2>Layers</h2><p class="dim">A click on a heading sorts, one on a row shows the values of the layer's input and where they are cut off.</p>
<div class="scroll"><table id="layers"></table></div>
<script id="data" type="application/json">)HTML";

const char kTail[] = R"HTML(</script>
<script>
"use strict";
const R=JSON.parse(document.getElementById("data").textContent),$=id=>document.getElementById(id);
const el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!=null)e.textContent=text;if(cls)e.className=cls;return e};
const NS="http://www.w3.org/2000/svg";
const sv=(tag,at,text)=>{const e=document.createElementNS(NS,tag);for(const k in at)e.setAttribute(k,at[k]);if(text!=null)e.textContent=text;return e};
const fmt=(v,d)=>v==null?"":typeof v==="number"?v.toFixed(d):String(v),pc=v=>(100*v).toFixed(2)+" %";
$("model").textContent=R.model.split("/").pop();$("model").title=R.model;
$("about").textContent="method "+R.method+", "+R.calibration.samples+" samples to calibrate with ("+R.calibration.skipped.length+" skipped, "+
 fmt(R.calibration.seconds,1)+" s), "+R.accuracy.samples+" to judge with"+(R.accuracy.held_out?", held out":", which were calibrated with too");
const card=(name,value,more)=>{const c=el("div",null,"card");c.append(el("span",name,"dim"),el("b",value),el("span",more||"","dim"));$("cards").append(c)};
if(R.accuracy.labelled)card("top-1",pc(R.accuracy.top1_after),"before "+pc(R.accuracy.top1_before)),card("top-5",pc(R.accuracy.top5_after),"before "+pc(R.accuracy.top5_before));
if(R.accuracy.task)card(R.accuracy.task.metric,fmt(R.accuracy.task.after,4),"before "+fmt(R.accuracy.task.before,4));
card("cosine",fmt(R.accuracy.cosine,6));card("SQNR",fmt(R.accuracy.sqnr_db,1)+" dB");card("same argmax",pc(R.accuracy.argmax_agreement));
const bytes=v=>v<1e6?(v/1e3).toFixed(1)+" kB":(v/1e6).toFixed(2)+" MB";card("weights",bytes(R.bytes.after),"before "+bytes(R.bytes.before));
if(R.ms.after!=null)card("time",fmt(R.ms.after,3)+" ms","before "+fmt(R.ms.before,3)+" ms");
if(R.advice.length){$("advice").append(el("h2","What costs most, and what to do"));const ul=el("ul");R.advice.forEach(a=>ul.append(el("li",a)));$("advice").append(ul)}
function table(id,columns,rows,click){const t=$(id);let by=-1,up=true;const draw=()=>{t.replaceChildren();const h=el("tr");
 columns.forEach((c,i)=>{const th=el("th",c[0]+(i===by?(up?" \u25b2":" \u25bc"):""),c[3]?"t":"");th.onclick=()=>{up=by===i?!up:true;by=i;
 rows.sort((a,b)=>{const x=c[1](a),y=c[1](b);const o=x==null?1:y==null?-1:x<y?-1:x>y?1:0;return up?o:-o});draw()};h.append(th)});t.append(h);
 rows.forEach(r=>{const tr=el("tr",null,(click?"row":"")+(r.beyond_limits?" bad":""));columns.forEach(c=>{const td=el("td",fmt(c[1](r),c[2]),c[3]?"t":"");td.title=td.textContent;tr.append(td)});
 if(click)tr.onclick=()=>click(r,tr,columns.length);t.append(tr)})};draw()}
const db=k=>l=>l[k]?l[k].sqnr_db:null;
table("outputs",[["output",o=>o.blob,0,1],["cosine",o=>o.cosine,6],["least cosine",o=>o.least_cosine,6],["SQNR dB",o=>o.sqnr_db,2],["same argmax",o=>o.argmax_agreement,4],["max error",o=>o.max_error,5],["mean error",o=>o.mean_error,6]],R.accuracy.outputs.slice());
table("layers",[["layer",l=>l.name,0,1],["type",l=>l.type,0,1],["kind",l=>l.kind,0,1],["range from",l=>l.method||l.origin||l.why||"",0,1],["low",l=>l.low,3],["high",l=>l.high,3],["measured high",l=>l.measured_high,3],
 ["own dB",db("own"),1],["weights dB",db("weights"),1],["cumulative dB",db("cumulative"),1],["max error",l=>l.own?l.own.max_error:null,4],["mean error",l=>l.own?l.own.mean_error:null,5]],R.layers.slice(),histogram);
function histogram(l,tr,span){if(tr.nextSibling&&tr.nextSibling.dataset.of){tr.nextSibling.remove();return}const h=l.histogram;if(!h)return;
 const W=1000,H=180,n=h.positive.length,all=h.negative.slice().reverse().concat(h.positive),most=Math.log1p(Math.max(1,...all));
 const s=sv("svg",{viewBox:`0 0 ${W} ${H+18}`});all.forEach((v,i)=>{const y=Math.log1p(v)/most*H;s.append(sv("rect",{x:i*W/all.length,y:H-y,width:W/all.length-.5,height:y,fill:"var(--a)"}))});
 const x=v=>(v/h.limit+1)/2*W;[l.low,l.high].forEach(v=>{if(v!=null&&Math.abs(v)<=h.limit)s.append(sv("line",{x1:x(v),x2:x(v),y1:0,y2:H,stroke:"var(--b)","stroke-width":2}))});
 [[-1,"start"],[0,"middle"],[1,"end"]].forEach(([k,a])=>s.append(sv("text",{x:(k+1)/2*W,y:H+14,"text-anchor":a},(k*h.limit).toPrecision(4))));
 const row=el("tr"),td=el("td");row.dataset.of=l.name;td.colSpan=span;td.append(el("div",l.input+": counts on a logarithmic scale, thresholds in orange","dim t"),s);row.append(td);tr.after(row)}
(function series(){const L=R.layers.filter(l=>l.own);if(!L.length)return;const W=1000,H=260;let from=0,to=L.length;
 const draw=()=>{const s=sv("svg",{viewBox:`0 -10 ${W} ${H+32}`}),top=80,x=i=>40+(i-from+.5)*(W-50)/(to-from),y=v=>H-Math.max(0,Math.min(top,v))/top*H;
 for(let d=0;d<=top;d+=20)s.append(sv("line",{x1:40,x2:W,y1:y(d),y2:y(d),stroke:"var(--line)"}),sv("text",{x:34,y:y(d)+4,"text-anchor":"end"},d===top?d+" dB":d));
 for(let i=from;i<to;i+=Math.ceil((to-from)*95/(W-50)))s.append(sv("text",{x:x(i),y:H+16,"text-anchor":"middle"},L[i].name.slice(-14)));
 [["weights","#8a93a3"],["cumulative","var(--b)"],["own","var(--a)"]].forEach(([k,c])=>{let p="";for(let i=from;i<to;i++)p+=(i>from?"L":"M")+x(i)+" "+y(L[i][k].sqnr_db);
 s.append(sv("path",{d:p,fill:"none",stroke:c,"stroke-width":1.5}));for(let i=from;i<to;i++){const o=sv("circle",{cx:x(i),cy:y(L[i][k].sqnr_db),r:3,fill:c});o.append(sv("title",{},L[i].name+" "+k+" "+fmt(L[i][k].sqnr_db,1)+" dB"));s.append(o)}});
 s.onwheel=e=>{e.preventDefault();const r=s.getBoundingClientRect(),at=from+(e.clientX-r.left)/r.width*(to-from),near=e.deltaY<0,f=near?.8:1.25;
 from=Math.max(0,Math[near?"ceil":"floor"](at-(at-from)*f));to=Math.min(L.length,Math[near?"floor":"ceil"](at+(to-at)*f));if(to-from<3)to=Math.min(L.length,from+3);draw()};
 s.ondblclick=()=>{from=0;to=L.length;draw()};$("series").replaceChildren(s)};draw()})();
if(R.frontier){const F=R.frontier,d=$("frontier");d.append(el("h2","Mixed precision"),el("p","Drop ("+R.metric+") against bytes of weights; the number is that of layers in float, the chosen point is orange.","dim"));
 const W=1000,H=240,lo=Math.min(...F.map(p=>p.bytes)),hi=Math.max(...F.map(p=>p.bytes)),top=Math.max(1e-12,...F.map(p=>p.drop)),x=p=>50+(p.bytes-lo)/Math.max(1,hi-lo)*(W-100),y=p=>H-Math.max(0,p.drop)/top*(H-20),s=sv("svg",{viewBox:`0 0 ${W} ${H+20}`});
 s.append(sv("path",{d:F.map((p,i)=>(i?"L":"M")+x(p)+" "+y(p)).join(""),fill:"none",stroke:"var(--line)"}));
 F.forEach(p=>{const o=sv("circle",{cx:x(p),cy:y(p),r:p.chosen?7:4,fill:p.chosen?"var(--b)":"var(--a)"});o.append(sv("title",{},p.float_layers+" in "+p.kind+": drop "+p.drop+", "+fmt(p.ms,3)+" ms, "+p.bytes+" bytes; + "+p.layers.join(" ")));s.append(o,sv("text",{x:x(p)+8,y:y(p)-6},p.float_layers))});
 s.append(sv("text",{x:50,y:H+16},bytes(lo)),sv("text",{x:W-50,y:H+16,"text-anchor":"end"},bytes(hi)),sv("text",{x:0,y:14},top.toPrecision(3)));d.append(s)}
</script>
</html>
)HTML";

}  // namespace

std::string report_html(const QuantizeReport& report) {
    // Names may hold what would end the script's element.
    std::string data;
    for (char ch : report_json(report)) data += ch == '<' ? "\\u003c" : std::string(1, ch);
    return kHead + data + kTail;
}

}  // namespace quoll
