#include "info/page.h"

#include "info/picture.h"

namespace quoll {

namespace {

// The page shows what the JSON and the picture in it say; it loads nothing from anywhere.
const char kHead[] = R"HTML(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
:root{--fg:#1b2230;--dim:#667085;--bg:#f6f7f9;--card:#fff;--line:#dde2ea;--a:#2563eb;--hot:#ea580c}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#9aa3b2;--bg:#14181f;--card:#1c222c;--line:#2f3846;--a:#6ea0ff;--hot:#ff9a55}}
*{box-sizing:border-box}body{font:14px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:0;padding:1.2rem}
h1{font-size:1.4rem;margin:0 0 .8rem}h2{font-size:1.05rem;margin:1.4rem 0 .5rem}.dim{color:var(--dim)}
.cards{display:flex;flex-wrap:wrap;gap:.7rem}.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.5rem .9rem}
.card span{display:block;font-size:.8rem;color:var(--dim)}.card b{font-size:1.15rem;font-variant-numeric:tabular-nums}
.tools{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:1rem 0 .5rem}
input[type=search]{font:inherit;padding:.35rem .7rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:var(--fg);width:20rem}
button,select{font:inherit;padding:.3rem .8rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:var(--fg);cursor:pointer}
.main{display:grid;grid-template-columns:minmax(0,1fr) 24rem;gap:.8rem}@media(max-width:900px){.main{grid-template-columns:1fr}}
.graph,.side{background:var(--card);border:1px solid var(--line);border-radius:.6rem;height:70vh;overflow:hidden}
.graph svg{width:100%;height:100%;cursor:grab;touch-action:none;user-select:none}.side{overflow:auto;padding:.8rem 1rem}
.side h3{margin:0;font-size:1.05rem;overflow-wrap:anywhere}.side table{width:100%}.side td{overflow-wrap:anywhere;white-space:normal}
.graph rect{stroke:#667085}.graph text{fill:#1b2230}.graph .n{fill:#475467}.graph g.layer{cursor:pointer}.graph g.faint{opacity:.18}
.graph g.chosen rect{stroke:var(--a);stroke-width:3}.graph path{stroke:#98a2b3}.graph path.chosen{stroke:var(--a);stroke-width:2}.graph marker polygon{fill:context-stroke}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{text-align:right;padding:.22rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
td.t,th.t{text-align:left}#layers{width:100%;background:var(--card)}#layers th{cursor:pointer;position:sticky;top:0;background:var(--card)}
#layers tr.row{cursor:pointer}#layers tr.chosen td{background:#2563eb22}.bar{display:inline-block;height:.6rem;background:var(--hot);border-radius:.2rem;margin-left:.4rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.6rem}
</style>
)HTML";

const char kBody[] = R"HTML(
<h1 id="title"></h1><div class="cards" id="cards"></div>
<div class="tools"><input type="search" id="search" placeholder="type, name, blob or parameter" aria-label="search">
<span class="dim" id="found"></span><button id="in" aria-label="larger">+</button><button id="out" aria-label="smaller">&minus;</button><button id="fit">whole graph</button>
<label>colours <select id="colours"><option value="type">types</option><option value="macs">multiply-accumulates</option><option value="weights">parameters</option></select></label>
<span class="dim">Wheel: zoom. Drag: move. Click: details.</span></div>
<div class="main"><div class="graph" id="graph">)HTML";

const char kScript[] = R"HTML(</div><div class="side" id="side"></div></div>
<h2>Layers</h2><div class="scroll"><table id="layers"></table></div>
<script>
"use strict";
const R=JSON.parse(document.getElementById("data").textContent),$=id=>document.getElementById(id);
const el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!=null)e.textContent=text;if(cls)e.className=cls;return e};
const num=v=>v==null?"?":v.toLocaleString("en"),size=b=>b.shape?"("+b.shape.join(", ")+") "+(b.dtype||""):"?";
const bytes=v=>v>=1e6?(v/1e6).toFixed(2)+" MB":v>=1e3?(v/1e3).toFixed(1)+" kB":v+" B",count=v=>v>=1e9?(v/1e9).toFixed(2)+" G":v>=1e6?(v/1e6).toFixed(1)+" M":num(v);
const L=R.layers;L.forEach((l,i)=>{l.i=i;l.count=l.weights.reduce((s,w)=>s+w.count,0);
 l.plan=(R.exec_plan||[]).find(p=>p.name===l.name);
 l.text=[l.type,l.name,l.params,...Object.keys(l.fields),...l.inputs.map(b=>b.name),...l.outputs.map(b=>b.name)].join(" ").toLowerCase()});
$("title").textContent=document.title;
const least=(whole,v,text)=>whole?text(v):v?"\u2265 "+text(v):"?";
const card=(name,value)=>{const c=el("div",null,"card");c.append(el("span",name),el("b",value));$("cards").append(c)};
card("layers",num(R.layer_count));card("multiply-accumulates",least(R.macs_complete,R.macs,count));card("parameters",count(R.parameters));
if(R.weight_bytes!=null)card("weights",bytes(R.weight_bytes));card("blobs, most at a time",least(R.memory.complete,R.memory.peak_bytes,bytes));
R.inputs.forEach(b=>card("input "+b.name,size(b)));R.outputs.forEach(b=>card("output "+b.name,size(b)));
const unsaid=R.inputs.filter(b=>!b.shape).map(b=>" --shape "+b.name+"=C,H,W").join("");
if(unsaid)$("cards").after(el("p","The model leaves sizes open. With them there is more to see: engineinfo"+unsaid,"dim"));
const svg=$("graph").querySelector("svg"),nodes=[...svg.querySelectorAll("g.layer")],edges=[...svg.querySelectorAll("path[data-from]")];
const W=svg.viewBox.baseVal.width,H=svg.viewBox.baseVal.height;svg.removeAttribute("width");svg.removeAttribute("height");
let view={x:0,y:0,w:W,h:H};const apply=()=>svg.setAttribute("viewBox",[view.x,view.y,view.w,view.h].join(" "));
const box=()=>svg.getBoundingClientRect(),scale=()=>{const r=box();return Math.max(view.w/r.width,view.h/r.height)};
const at=e=>{const m=svg.getScreenCTM().inverse();return new DOMPoint(e.clientX,e.clientY).matrixTransform(m)};
function zoom(f,p){p=p||{x:view.x+view.w/2,y:view.y+view.h/2};const w=Math.min(2*Math.max(W,H),Math.max(120,view.w*f)),k=w/view.w;
 view={x:p.x-(p.x-view.x)*k,y:p.y-(p.y-view.y)*k,w:w,h:view.h*k};apply()}
const middle=i=>{const b=nodes[i].querySelector("rect").getBBox();return{x:b.x+b.width/2,y:b.y+b.height/2}};
function whole(){view={x:0,y:0,w:W,h:H};apply()}
function start(){const r=box(),w=Math.min(W,Math.max(r.width,r.width*1.1));view={x:w<W&&nodes.length?middle(0).x-w/2:(W-w)/2,y:0,w:w,h:w*r.height/r.width};if(view.h>H&&view.w>=W)whole();apply()}
svg.addEventListener("wheel",e=>{e.preventDefault();zoom(e.deltaY<0?.85:1/.85,at(e))},{passive:false});
let drag=null,moved=false;svg.onpointerdown=e=>{drag={x:e.clientX,y:e.clientY,v:view};moved=false};
window.onpointermove=e=>{if(!drag)return;const s=scale();if(Math.abs(e.clientX-drag.x)+Math.abs(e.clientY-drag.y)>4)moved=true;
 view={...drag.v,x:drag.v.x-(e.clientX-drag.x)*s,y:drag.v.y-(e.clientY-drag.y)*s};apply()};window.onpointerup=()=>drag=null;
$("in").onclick=()=>zoom(.7);$("out").onclick=()=>zoom(1/.7);$("fit").onclick=whole;
nodes.forEach((g,i)=>{g.onclick=()=>{if(!moved)choose(i,false)}});
function pairs(title,rows){const s=$("side");if(!rows.length)return;s.append(el("h2",title));const t=el("table");
 rows.forEach(r=>{const tr=el("tr");tr.append(el("td",r[0],"t"),el("td",r[1]));t.append(tr)});s.append(t)}
let chosen=-1;function choose(i,move){chosen=i;const l=L[i];nodes.forEach((g,k)=>g.classList.toggle("chosen",k===i));
 edges.forEach(p=>p.classList.toggle("chosen",+p.dataset.from===i||+p.dataset.to===i));
 document.querySelectorAll("#layers tr.row").forEach(tr=>tr.classList.toggle("chosen",+tr.dataset.i===i));
 const s=$("side");s.replaceChildren(el("h3",l.name),el("div",l.type+", layer "+(i+1)+" of "+L.length,"dim"));
 pairs("Inputs",l.inputs.map(b=>[b.name,size(b)]));pairs("Outputs",l.outputs.map(b=>[b.name,size(b)]));
 pairs("Parameters that are not the default",Object.entries(l.fields));
 pairs("Weights",l.weights.map(w=>[w.name+" "+(w.dtype||""),num(w.count)]));
 const cost=[];if(l.macs)cost.push(["multiply-accumulates",num(l.macs)],["of the whole",(100*l.macs/R.macs).toFixed(1)+" %"]);
 if(l.bytes!=null)cost.push(["bytes moved",num(l.bytes)]);pairs("Cost",cost);
 if(l.plan)pairs("How it runs",[["on",l.plan.target],["kernels",l.plan.kernels+(l.plan.isa?" "+l.plan.isa:"")],...l.plan.notes.map(n=>["note",n])]);
 if(move){const p=middle(i),b=box(),w=Math.min(view.w,900),h=w*b.height/b.width;view={w:w,h:h,x:p.x-w/2,y:p.y-h/2};apply()}}
$("search").oninput=()=>{const words=$("search").value.toLowerCase().split(/\s+/).filter(Boolean);let n=0,first=-1;
 L.forEach((l,i)=>{const hit=words.every(w=>l.text.includes(w));if(hit&&words.length&&first<0)first=i;if(hit)n++;nodes[i].classList.toggle("faint",!hit);l.hit=hit});
 $("found").textContent=words.length?n+" of "+L.length:"";if(first>=0)choose(first,true);table()};
const plain=nodes.map(g=>g.querySelector("rect").getAttribute("fill"));
$("colours").onchange=()=>{const key={macs:l=>l.macs||0,weights:l=>l.count}[$("colours").value];
 const most=key?Math.max(1,...L.map(key)):1;nodes.forEach((g,i)=>g.querySelector("rect").setAttribute("fill",key?`hsl(${50-50*Math.sqrt(key(L[i])/most)},90%,${95-35*Math.sqrt(key(L[i])/most)}%)`:plain[i]))};
const columns=[["#",l=>l.i+1],["type",l=>l.type,1],["name",l=>l.name,1],["output",l=>l.outputs.length?size(l.outputs[0]):"",1],["multiply-accumulates",l=>l.macs,0,1],["parameters",l=>l.count],
 ...(R.exec_plan?[["kernels",l=>l.plan?l.plan.kernels:"",1],["notes",l=>l.plan?l.plan.notes.join("; "):"",1]]:[])];
let by=0,up=true;function table(){const t=$("layers"),h=el("tr"),most=Math.max(1,...L.map(l=>l.macs||0));t.replaceChildren(h);
 columns.forEach((c,i)=>{const th=el("th",c[0]+(i===by?up?" \u25b2":" \u25bc":""),c[2]?"t":"");th.onclick=()=>{up=by===i?!up:!!c[2]||i===0;by=i;table()};h.append(th)});
 L.filter(l=>l.hit!==false).sort((a,b)=>{const x=columns[by][1](a)??-1,y=columns[by][1](b)??-1;return(x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(l=>{const tr=el("tr",null,"row");tr.dataset.i=l.i;
 columns.forEach(c=>{const v=c[1](l),td=el("td",typeof v==="number"||v==null?num(v):v,c[2]?"t":"");if(c[3]&&v){const b=el("span",null,"bar");b.style.width=4*v/most+"rem";td.append(b)}tr.append(td)});
 tr.onclick=()=>{choose(l.i,true);window.scrollTo({top:0,behavior:"smooth"})};t.append(tr)})}
table();start();if(L.length)choose(Math.max(0,L.indexOf(L.reduce((a,l)=>(l.macs||0)>(a.macs||0)?l:a,L[0]))),false);
</script></body></html>
)HTML";

}  // namespace

std::string html_page(const ModelReport& report) {
    const std::string title = escaped(report.path.substr(report.path.rfind('/') + 1));
    std::string data;
    for (char ch : json_text(report)) data += ch == '<' ? "\\u003c" : std::string(1, ch);
    return std::string(kHead) + "<title>" + title + "</title></head><body>\n" +
           "<script id=\"data\" type=\"application/json\">" + data + "</script>" + kBody +
           svg_picture(report) + kScript;
}

}  // namespace quoll
