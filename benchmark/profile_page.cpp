#include "profile_page.h"

namespace quoll {

using nlohmann::json;

namespace {

// The page shows what the JSON in it says; it loads nothing from anywhere.
const char kHead[] = R"HTML(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>quoll profile</title>
<style>
:root{--fg:#1b2230;--dim:#667085;--bg:#f6f7f9;--card:#fff;--line:#dde2ea;--a:#2563eb;--hot:#ea580c}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#9aa3b2;--bg:#14181f;--card:#1c222c;--line:#2f3846;--a:#6ea0ff;--hot:#ff9a55}}
*{box-sizing:border-box}body{font:14px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:0;padding:1.2rem}
h1{font-size:1.4rem;margin:0 0 .8rem}h2{font-size:1.05rem;margin:1.4rem 0 .4rem}.dim{color:var(--dim)}
.cards{display:flex;flex-wrap:wrap;gap:.7rem}.card,.chart{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.5rem .9rem}
.card span{display:block;font-size:.8rem;color:var(--dim)}.card b{font-size:1.15rem;font-variant-numeric:tabular-nums}
input,select,button{font:inherit;padding:.3rem .7rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:var(--fg)}input{width:20rem}
.two{display:grid;grid-template-columns:1fr 1fr;gap:.8rem}.two>div{min-width:0}@media(max-width:900px){.two{grid-template-columns:1fr}}
.chart svg{width:100%;height:auto;display:block;user-select:none}.chart text{fill:var(--dim);font-size:11px}.chart text.on{fill:#1b2230}.chart line{stroke:var(--line)}.chart rect{stroke:var(--card);stroke-width:.5}
rect.chosen{stroke:var(--fg)!important;stroke-width:2!important}.faint{opacity:.2}#timeline svg{cursor:grab}
@media(max-width:40rem){.chart{overflow-x:auto}.chart svg{min-width:30rem}#timeline svg{min-width:50rem}}
table{border-collapse:collapse;width:100%;background:var(--card);font-variant-numeric:tabular-nums}th,td{text-align:right;padding:.22rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
td.t,th.t{text-align:left}th{cursor:pointer;position:sticky;top:0;background:var(--card)}tr.row{cursor:pointer}tr.chosen td{background:#2563eb22}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.6rem}
</style></head><body>
<h1>Profile of <span id="name"></span> <select id="model" aria-label="model"></select></h1><div class="cards" id="cards"></div>
<h2>One run, layer after layer</h2><div class="dim">Medians of all runs, in milliseconds. Wheel: zoom. Drag: move. Double click: all. <span id="about"></span></div>
<div class="chart" id="timeline"></div>
<div class="two"><div><h2>By type of layer</h2><div class="chart" id="types"></div></div><div><h2>Runs</h2><div class="chart" id="runs"></div></div></div>
<h2>Layers</h2><p><input type="search" id="search" placeholder="type or name" aria-label="search"> <span class="dim" id="found"></span></p>
<div class="scroll"><table id="layers"></table></div><svg id="ns" width="0" height="0"></svg>
<script id="data" type="application/json">)HTML";

const char kScript[] = R"HTML(</script>
<script>
"use strict";
const ROWS=JSON.parse(document.getElementById("data").textContent),$=id=>document.getElementById(id),NS=$("ns").namespaceURI;
const el=(tag,text,cls)=>{const e=document.createElement(tag);if(text!=null)e.textContent=text;if(cls)e.className=cls;return e};
const sv=(tag,at,text)=>{const e=document.createElementNS(NS,tag);for(const k in at)e.setAttribute(k,at[k]);if(text!=null)e.textContent=text;return e};
const median=v=>{const s=[...v].sort((a,b)=>a-b),n=s.length;return n?(s[n-1>>1]+s[n>>1])/2:0};
const ms=v=>v>=100?v.toFixed(1):v>=1?v.toFixed(3):v.toFixed(4),hue=t=>{let h=2166136261;for(const c of t)h=Math.imul(h^c.charCodeAt(0),16777619);return`hsl(${(h>>>0)%360},60%,68%)`};
// Round numbers of which at most `most` lie between low and high.
const ticks=(low,high,most)=>{const raw=(high-low)/most||1,p=10**Math.floor(Math.log10(raw)),s=[1,2,5,10].map(k=>k*p).find(k=>k>=raw),t=[];
 for(let i=Math.ceil(low/s);i*s<=high*(1+1e-9);i++)t.push(+(i*s).toPrecision(12));return t};
let row,L,total,by=0,up=true,chosen=-1,from=0,to=1;
ROWS.forEach((r,i)=>{const o=el("option",r.model);o.value=i;$("model").append(o)});$("model").hidden=ROWS.length<2;
$("model").onchange=()=>show(ROWS[+$("model").value]);
function show(r){row=r;L=r.profile.layers.map((l,i)=>({...l,i,mid:median(l.ms),at:median(l.start_ms),low:Math.min(...l.ms),high:Math.max(...l.ms)}));
 total=Math.max(1e-12,L.reduce((s,l)=>s+l.mid,0));let sum=0;L.forEach(l=>{l.share=100*l.mid/total;sum+=l.share;l.cdf=sum;l.speed=l.macs?l.macs/l.mid*1e-6:null});
 $("name").textContent=r.model;$("cards").replaceChildren();const card=(n,v)=>{const c=el("div",null,"card");c.append(el("span",n),el("b",v));$("cards").append(c)};
 const t=r.times_ms,macs=L.reduce((s,l)=>s+l.macs,0);card("median of "+t.length+" runs",ms(median(t))+" ms");card("fastest, slowest",ms(Math.min(...t))+", "+ms(Math.max(...t))+" ms");
 card("sum of layers",ms(total)+" ms");card("layers",L.length);if(macs)card("10\u2076 multiply-accumulates",(macs/1e6).toPrecision(4)),card("10\u2079 of them a second",(macs/median(t)*1e-6).toFixed(1));
 card("loading",ms(r.load_ms)+" ms");card("memory, at most",r.peak_mib.toFixed(1)+" MiB");
 from=0;to=Math.max(...L.map(l=>l.at+l.mid),1e-9);chosen=-1;columns=all.slice(0,L.some(l=>l.on)?all.length:-2);by=Math.min(by,columns.length-1);$("about").textContent="";types();runs();search()}
const text=l=>l.type+" "+l.name+": "+ms(l.mid)+" ms, "+l.share.toFixed(1)+" %"+(l.speed?", "+l.speed.toFixed(1)+" GMAC/s":"")+(l.filter?", "+l.filter:"")+" \u2192 "+l.output+(l.cliff?", "+l.cliff:"")+(l.on?", on "+l.on:"")+(l.dispatches||[]).map(d=>"; "+d.shader+" "+d.groups+" "+ms(median(d.ms))+" ms").join("");
function timeline(){const W=1200,H=130,s=sv("svg",{viewBox:`0 0 ${W} ${H}`}),x=v=>18+(v-from)/(to-from)*(W-36);
 ticks(from,to,10).forEach(v=>s.append(sv("line",{x1:x(v),x2:x(v),y1:6,y2:H-20}),sv("text",{x:x(v),y:H-6,"text-anchor":"middle"},v+" ms")));
 L.forEach(l=>{if(l.at>to||l.at+l.mid<from)return;const a=x(Math.max(from,l.at)),b=x(Math.min(to,l.at+l.mid)),g=sv("rect",{x:a,y:14,width:Math.max(.6,b-a),height:H-44,fill:hue(l.type),class:(l.i===chosen?"chosen ":"")+(l.hit?"":"faint"),"data-i":l.i});
  g.append(sv("title",{},text(l)));g.onclick=()=>choose(l.i);s.append(g);if(b-a>60){const n=sv("text",{x:a+4,y:30,"pointer-events":"none",class:"on"},l.type.slice(0,Math.floor((b-a)/7)));s.append(n);s.append(sv("text",{x:a+4,y:44,"pointer-events":"none",class:"on"},l.name.slice(0,Math.floor((b-a)/7))))}});
 const whole=Math.max(...L.map(l=>l.at+l.mid)),at=e=>{const r=s.getBoundingClientRect();return from+((e.clientX-r.left)/r.width*W-18)/(W-36)*(to-from)};
 s.addEventListener("wheel",e=>{e.preventDefault();const p=at(e),f=e.deltaY<0?.8:1.25;from=Math.max(0,p-(p-from)*f);to=Math.min(whole,p+(to-p)*f);if(to-from<1e-4)to=from+1e-4;timeline()},{passive:false});
 s.ondblclick=()=>{from=0;to=whole;timeline()};
 s.onpointerdown=e=>{const p=at(e),w=to-from;const move=m=>{const r=$("timeline").firstChild.getBoundingClientRect();from=Math.min(Math.max(0,p-((m.clientX-r.left)/r.width*W-18)/(W-36)*w),Math.max(0,whole-w));to=from+w;if(Math.abs(m.clientX-e.clientX)>3)timeline()};
  window.addEventListener("pointermove",move);window.addEventListener("pointerup",()=>window.removeEventListener("pointermove",move),{once:true})};
 $("timeline").replaceChildren(s)}
function types(){const m=new Map();L.forEach(l=>{const t=m.get(l.type)||{n:0,ms:0,macs:0};t.n++;t.ms+=l.mid;t.macs+=l.macs;m.set(l.type,t)});
 const T=[...m].sort((a,b)=>b[1].ms-a[1].ms),W=600,h=22,s=sv("svg",{viewBox:`0 0 ${W} ${T.length*h+24}`}),most=T.length?T[0][1].ms:1,x=v=>170+v/most*(W-380);
 ticks(0,most,4).forEach(v=>s.append(sv("line",{x1:x(v),x2:x(v),y1:0,y2:T.length*h}),sv("text",{x:x(v),y:T.length*h+16,"text-anchor":"middle"},v+" ms")));
 T.forEach(([k,t],i)=>s.append(sv("text",{x:164,y:i*h+15,"text-anchor":"end"},k+" \u00d7"+t.n),sv("rect",{x:170,y:i*h+3,width:Math.max(1,x(t.ms)-170),height:h-6,fill:hue(k)}),
  sv("text",{x:x(t.ms)+6,y:i*h+15},ms(t.ms)+" ms, "+(100*t.ms/total).toFixed(1)+" %"+(t.macs?", "+(t.macs/t.ms*1e-6).toFixed(0)+" GMAC/s":""))));$("types").replaceChildren(s)}
function runs(){const t=row.times_ms,W=600,H=220,low=Math.min(...t),high=Math.max(...t),pad=(high-low||high||1)*.15,a=Math.max(0,low-pad),b=high+pad,s=sv("svg",{viewBox:`0 0 ${W} ${H+24}`});
 const x=i=>84+(i+.5)*(W-94)/t.length,y=v=>H-(v-a)/(b-a)*(H-10);
 ticks(a,b,6).forEach(v=>s.append(sv("line",{x1:84,x2:W,y1:y(v),y2:y(v)}),sv("text",{x:78,y:y(v)+4,"text-anchor":"end"},v+" ms")));
 ticks(1,t.length,8).filter(v=>v>=1&&v===Math.round(v)).forEach(v=>s.append(sv("text",{x:x(v-1),y:H+16,"text-anchor":"middle"},"run "+v)));
 const m=median(t),line=sv("line",{x1:84,x2:W,y1:y(m),y2:y(m)});line.style.stroke="var(--hot)";s.append(line,sv("text",{x:W-4,y:y(m)-5,"text-anchor":"end"},"median "+ms(m)+" ms"));
 t.forEach((v,i)=>{const c=sv("circle",{cx:x(i),cy:y(v),r:4});c.style.fill="var(--a)";c.append(sv("title",{},"run "+(i+1)+": "+ms(v)+" ms"));s.append(c)});$("runs").replaceChildren(s)}
const all=[["#",l=>l.i+1],["type",l=>l.type,1],["name",l=>l.name,1],["median ms",l=>l.mid,0,ms],["least",l=>l.low,0,ms],["most",l=>l.high,0,ms],["%",l=>l.share,0,v=>v.toFixed(1)],["sum %",l=>l.cdf,0,v=>v.toFixed(1)],
 ["GMAC/s",l=>l.speed,0,v=>v.toFixed(1)],["filter",l=>l.filter,1],["stride",l=>l.stride,1],["output",l=>l.output,1],["on",l=>l.on,1],["dispatches",l=>l.dispatches&&l.dispatches.length]];
let columns=all;
function table(){const t=$("layers"),h=el("tr");t.replaceChildren(h);
 columns.forEach((c,i)=>{const th=el("th",c[0]+(i===by?up?" \u25b2":" \u25bc":""),c[2]?"t":"");th.onclick=()=>{up=by===i?!up:!!c[2]||i===0;by=i;table()};h.append(th)});
 L.filter(l=>l.hit).sort((a,b)=>{const x=columns[by][1](a)??-1,y=columns[by][1](b)??-1;return(x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(l=>{const tr=el("tr",null,"row"+(l.i===chosen?" chosen":""));
 columns.forEach(c=>{const v=c[1](l);tr.append(el("td",v==null?"":c[3]?c[3](v):v,c[2]?"t":""))});tr.onclick=()=>choose(l.i);t.append(tr)})}
function choose(i){chosen=i;$("about").textContent=text(L[i]);timeline();table()}
function search(){const words=$("search").value.toLowerCase().split(/\s+/).filter(Boolean);let n=0;L.forEach(l=>{l.hit=words.every(w=>(l.type+" "+l.name).toLowerCase().includes(w));n+=l.hit});
 $("found").textContent=words.length?n+" of "+L.length+", "+ms(L.filter(l=>l.hit).reduce((s,l)=>s+l.mid,0))+" ms":"";timeline();table()}
$("search").oninput=search;if(ROWS.length)show(ROWS[0]);
</script></body></html>
)HTML";

}  // namespace

std::string profile_page(const json& rows) {
    json shown = json::array();
    for (const json& row : rows)
        if (row.contains("profile")) shown.push_back(row);
    std::string data;
    for (char ch : shown.dump(-1, ' ', false, json::error_handler_t::replace))
        data += ch == '<' ? "\\u003c" : std::string(1, ch);
    return kHead + data + kScript;
}

}  // namespace quoll
