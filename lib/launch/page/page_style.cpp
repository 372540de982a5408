#include "launch/page/page_style.h"

#include <string_view>

#include "launch/page/chart.h"
#include "launch/page/markup.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--line:#d0d7de;--soft:#656d76;--card:#fff;--good:#1a7f37;--bad:#c62828;--run:#0969da}
body{margin:0;background:#f6f8fa;color:#1f2328;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:1180px;margin:auto;padding:16px;display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr))}
header,.wide{grid-column:1/-1}
header h1{font-size:22px;margin:0}
header p{margin:2px 0;color:var(--soft)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px;min-width:0}
h2{font-size:15px;margin:0 0 6px}
h2 small,.soft{color:var(--soft);font-weight:400}
.state{color:#fff;border-radius:99px;padding:2px 10px;font-size:13px;font-weight:600;vertical-align:3px}
.good{background:var(--good)}.bad{background:var(--bad)}.run{background:var(--run)}
.cause{border-left:5px solid var(--bad)}
pre{margin:6px 0;padding:8px;background:#8881;border-radius:6px;font:12px/1.45 ui-monospace,monospace;white-space:pre-wrap;max-height:26em;overflow:auto}
.scroll{overflow-x:auto;max-height:32em}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:500}
td.n,th.n{text-align:right}
tr.primary td{color:var(--bad);font-weight:600}
.bar{display:flex;height:14px;min-width:120px;border-radius:3px;overflow:hidden;background:#8882}
.bar i{background:currentColor}
.key{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px;margin-top:6px}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;background:currentColor;margin-right:5px}
.key span span{color:initial;color:CanvasText}
svg{display:block;width:100%;height:auto;touch-action:pan-y}
output{float:right;color:var(--soft);font-size:12px}
summary{cursor:pointer}
a{color:var(--run)}
@media(prefers-color-scheme:dark){:root{--line:#30363d;--soft:#9198a1;--card:#151b23;--good:#238636;--bad:#f85149;--run:#4493f8}body{background:#0d1117;color:#e6edf3}.bad{color:#0d1117}}
@media print{body{background:#fff}section{break-inside:avoid}}
)";

// It works on what the page has: a polyline has its points in the units of the picture, and the plot says what these stand for. Of
// several lines of one name, the nearest point counts, and the later line if two are as near.
constexpr std::string_view kScript = R"(
addEventListener('pointermove',e=>{
 const svg=e.target.closest&&e.target.closest('svg.chart');if(!svg)return;
 const out=svg.parentNode.querySelector('output'),plot=svg.querySelector('.plot');if(!plot)return;
 const n=k=>plot.dataset[k].split(' ').map(Number),[l,t,w,h]=n('area'),[x0,x1]=n('x'),[y0,y1]=n('y');
 const box=svg.getBoundingClientRect(),at=(e.clientX-box.left)/box.width*svg.viewBox.baseVal.width;
 let text='',step;const best=new Map();
 for(const line of plot.querySelectorAll('polyline'))for(const p of line.points){
  const d=Math.abs(p.x-at),known=best.get(line.dataset.name);
  if(!known||d<=known.d)best.set(line.dataset.name,{d,p})}
 for(const [name,{p}] of best){
  if(step===undefined)step=Math.round(x0+(p.x-l)/w*(x1-x0));
  text+=' '+name+' '+(y0+(t+h-p.y)/h*(y1-y0)).toPrecision(4)}
 out.textContent='step '+step+text});
addEventListener('load',()=>{
 const running=()=>document.querySelector('main').hasAttribute('data-running');
 if(location.protocol==='file:'){if(running())setTimeout(()=>location.reload(),5000);return}
 const look=async()=>{
  let pause=2000;
  try{
   const answer=await fetch(location.href,{cache:'no-store'});
   if(!answer.ok)throw 0;
   const page=new DOMParser().parseFromString(await answer.text(),'text/html'),main=document.querySelector('main'),next=page.querySelector('main');
   if(next.outerHTML!==document.shown){
    document.shown=next.outerHTML;
    const open=[...main.querySelectorAll('details[open]')].map(d=>d.id);
    document.title=page.title;
    main.replaceWith(next);
    for(const id of open){const d=document.getElementById(id);if(d)d.open=true}}
  }catch(problem){pause=10000;document.querySelector('#watch').textContent='fleetrun watch does not answer'}
  setTimeout(look,pause)};
 if(document.querySelector('#watch'))setTimeout(look,2000)});
)";

}  // namespace

std::string page_head(const std::string& title) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'\">"
      "<link rel=\"icon\" href=\"data:,\">";
  text += "<title>" + escape_markup(title) + "</title><style>";
  text += kStyle;
  return text + chart_style() + "</style></head>\n";
}

std::string page_script() { return "<script>" + std::string(kScript) + "</script>"; }

}  // namespace fleetrun::launch
