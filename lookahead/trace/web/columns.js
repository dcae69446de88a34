"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const KNOWN = ["model", "prompt", "output", "prediction", "recycled", "fallback"];
const CHUNK = 400, LONGEST = 2000; // tokens that are drawn together: about, and at most

const id = (name) => document.getElementById(name);
const names = data.sources.map(([name]) => name);
const others = names.filter((name) => !KNOWN.includes(name));
const kinds = names.map((name) => (KNOWN.includes(name) ? name : `other-${others.indexOf(name) % 4}`));
const hidden = new Set(); // sources that are not shown
let row, chosen = -1, kept = false;

/** Make an element; children are nodes or texts, and texts stay texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = (value) => value.toLocaleString("en");
const tokensOf = (count) => `${number(count)} token${count === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(0)} %` : "-");
const quoted = (text) => JSON.stringify(text);

function duration(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(2)} s`;
  return microseconds >= 1e3 ? `${(microseconds / 1e3).toFixed(1)} ms` : `${Math.round(microseconds)} µs`;
}

/** The place of the last entry that is at most `value`, in a sorted list. */
function floor(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

function sums(counts) {
  const found = new Int32Array(counts.length);
  for (let at = 1; at < counts.length; at++) found[at] = found[at - 1] + counts[at - 1];
  return found;
}

// ---- One row's columns ----

function opened(given) {
  const { steps, path, nodes, texts } = given, count = texts.length;
  const tokens = sums(steps.emitted), firstNodes = sums(steps.drafted), paths = sums(steps.accepted);
  const node = new Int32Array(count).fill(-1), source = new Uint16Array(count), step = new Int32Array(count);
  for (let at = 0; at < tokens.length; at++) {
    for (let place = 0; place < steps.emitted[at]; place++) {
      const token = tokens[at] + place;
      step[token] = at;
      if (place < steps.accepted[at]) {
        node[token] = firstNodes[at] + path[paths[at] + place];
        source[token] = nodes.source[node[token]];
      }
    }
  }
  const chunks = chunksOf(texts), starts = chunks.map(({ from }) => from);
  return { ...given, count, tokens, firstNodes, paths, node, source, step, chunks, starts };
}

/** Divide the tokens at ends of lines; a token over an end is shown in two parts. */
function chunksOf(texts) {
  const chunks = [];
  let from = 0, skip = 0;
  for (let at = 0; at < texts.length; at++) {
    const size = at - from + 1, end = texts[at].lastIndexOf("\n") + 1;
    if ((size >= CHUNK && end > (at === from ? skip : 0)) || size >= LONGEST) {
      const cut = end && end < texts[at].length ? end : texts[at].length;
      chunks.push({ from, skip, to: at + 1, cut });
      [from, skip] = cut < texts[at].length ? [at, cut] : [at + 1, 0];
    }
  }
  if (from < texts.length) chunks.push({ from, skip, to: texts.length, cut: texts[texts.length - 1].length });
  return chunks;
}

function shownText(chunk, token) {
  const text = row.texts[token];
  return text.slice(token === chunk.from ? chunk.skip : 0, token === chunk.to - 1 ? chunk.cut : text.length);
}
