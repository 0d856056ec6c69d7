// Parses gantt diagrams with GitHub's own library.
//
// In: JSON, a list of diagrams' texts. Out: JSON, for each {"error": …}, or its title, settings and tasks.
// Mermaid cleans and draws in a browser: jsdom stands in for it.
import { text } from "node:stream/consumers";
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><body></body>");
globalThis.window = window;
globalThis.document = window.document;
globalThis.CSSStyleSheet = window.CSSStyleSheet;
window.SVGElement.prototype.getBBox = () => ({ x: 0, y: 0, width: 60, height: 12 }); // jsdom lays nothing out

const { default: mermaid } = await import("mermaid");
mermaid.initialize({ startOnLoad: false, suppressErrorRendering: true });

async function read(source) {
  try {
    await mermaid.parse(source);
    await mermaid.render("drawn", source); // what can be parsed cannot always be drawn
    const { type, db } = await mermaid.mermaidAPI.getDiagramFromText(source);
    return {
      type,
      title: db.getDiagramTitle(),
      axisFormat: db.getAxisFormat(),
      tickInterval: db.getTickInterval() ?? null,
      sections: db.getSections(),
      tasks: db.getTasks().map((task) => ({
        section: task.section,
        name: task.task.trim(),
        began: written(task.startTime),
        ended: written(task.endTime),
        tags: ["active", "done", "crit", "milestone", "vert"].filter((tag) => task[tag]),
      })),
      compact: mermaid.mermaidAPI.getConfig().gantt.displayMode === "compact",
      leftPadding: mermaid.mermaidAPI.getConfig().gantt.leftPadding,
      longestText: mermaid.mermaidAPI.getConfig().maxTextSize,
    };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
}

// The diagram's dates and its axis are both in the reader's time zone, so dates show as they are written.
function written(date) {
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().replace("Z", "");
}

const results = [];
for (const source of JSON.parse(await text(process.stdin))) results.push(await read(source));
process.stdout.write(JSON.stringify(results));
