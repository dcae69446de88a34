// ---- What stands around, and what people do ----

function tip(event, text) {
  const box = id("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${event.clientY + 22 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 22}px`;
}

function stepTip(step) {
  const { steps } = row, [draft, verify, rest] = steps.times[step].map(duration);
  return `step ${number(step + 1)}: ${tokensOf(steps.emitted[step])}, ${steps.accepted[step]} of ${steps.drafted[step]} drafted accepted\n` +
    `draft ${draft}, verify ${verify}, rest ${rest}`;
}

function showTable() {
  const total = data.sources.reduce((sum, [, , accepted]) => sum + accepted, 0);
  id("sources").replaceChildren(...data.sources.map(([name, drafted, accepted], source) => {
    const button = make("button", { type: "button", "aria-pressed": "true", "aria-label": `show ${name}` }, "shown");
    button.onclick = () => {
      const off = !hidden.delete(source);
      if (off) hidden.add(source);
      button.setAttribute("aria-pressed", String(!off));
      button.textContent = off ? "not shown" : "shown";
      for (const chunk of row.chunks.filter(({ rich }) => rich)) {
        chunk.rich = undefined;
        enrich(chunk);
      }
    };
    const title = make("th", { scope: "row" }, make("span", { class: `ink ${kinds[source]}` }, swatch(source)), ` ${name}`);
    const copied = source ? [number(drafted), number(accepted), percent(accepted, drafted)] : ["-", "-", "-"];
    const cells = [`${number(accepted)} (${percent(accepted, total)})`, ...copied].map((text) => make("td", {}, text));
    return make("tr", {}, title, ...cells, make("td", {}, button));
  }));
}

function showRow(place) {
  row = opened(data.rows[place] ?? { prompt: [], texts: [], steps: { forward: [], drafted: [], accepted: [], emitted: [], times: [] }, path: [], nodes: {} });
  [chosen, kept] = [-1, false];
  id("details").replaceChildren(make("p", { class: "hint" }, "No token is chosen."));
  id("prompt").querySelector("pre").textContent = row.prompt.join("");
  id("prompt").querySelector("summary").textContent = `Prompt (${number(row.prompt.length)} tokens)`;
  showText();
  describePlots();
  drawAll();
}

const KEYS = {
  ArrowRight: () => chosen + 1,
  ArrowLeft: () => chosen - 1,
  ArrowDown: () => (chosen < 0 ? 0 : row.tokens[row.step[chosen]] + row.steps.emitted[row.step[chosen]]),
  ArrowUp: () => row.tokens[row.step[Math.max(0, row.tokens[row.step[Math.max(0, chosen)]] - 1)]],
  Home: () => 0,
  End: () => row.count - 1,
};

function listen() {
  const box = id("text");
  const tokenOf = (event) => (event.target.token === undefined ? -1 : event.target.token);
  box.onmousemove = (event) => {
    const token = tokenOf(event);
    tip(event, token < 0 ? "" : summary(token));
    if (token >= 0 && token !== chosen && !kept) choose(token);
  };
  box.onmouseleave = (event) => tip(event, "");
  box.onclick = (event) => {
    if (tokenOf(event) < 0) return;
    choose(tokenOf(event));
    kept = true;
  };
  box.onkeydown = (event) => {
    if (event.key === "Escape") kept = false;
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(KEYS[event.key](), { scroll: true, speak: true });
    kept = true;
  };
  for (const plot of document.querySelectorAll(".plot")) {
    plot.onmousemove = (event) => tip(event, row.count ? stepTip(stepAt(event)) : "");
    plot.onmouseleave = (event) => tip(event, "");
    plot.onclick = (event) => goTo(stepAt(event), { scroll: true });
  }
  id("step").oninput = (event) => goTo(Number(event.target.value) - 1, { scroll: true, speak: true });
  id("row").onchange = (event) => showRow(Number(event.target.value));
  const themes = [["system", "light dark"], ["light", "light"], ["dark", "dark"]];
  let theme = 0;
  id("theme").onclick = (event) => {
    theme = (theme + 1) % themes.length;
    document.documentElement.style.colorScheme = themes[theme][1];
    event.target.textContent = `Theme: ${themes[theme][0]}`;
    drawAll();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  new ResizeObserver(drawAll).observe(plots.tokens);
}

function start() {
  id("about").textContent = Object.entries(data.about).map(([name, value]) => (name === "model" ? value : `${name} ${value}`)).join(" · ");
  id("note").hidden = !data.note;
  id("note").textContent = data.note ? `Decoded plainly: ${data.note}` : "";
  id("figures").replaceChildren(...data.figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  id("rows").hidden = data.rows.length < 2;
  id("row").append(...data.rows.map((_, place) => make("option", { value: place }, `${place + 1} of ${data.rows.length}`)));
  showTable();
  showRow(0);
  listen();
  document.documentElement.dataset.ready = "true";
}

start();
