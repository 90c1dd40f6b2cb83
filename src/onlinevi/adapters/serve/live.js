"use strict";
// Shows one model of the service as it learns. All text goes into the page as text, never as markup.
(() => {
  const place = (id) => document.getElementById(id);
  const phone = matchMedia("(max-width: 640px)");
  const RETRY = [500, 1000, 2000, 5000];
  const pressed = new Map();
  let figures = {}, shown = null, tries = 0, reading = null;

  const token = () => sessionStorage.getItem("token");
  const headers = () => (token() ? { Authorization: `Bearer ${token()}` } : {});
  const asked = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return location.hash.slice(1); } };
  const wait = (ms) => new Promise((done) => { setTimeout(done, ms); });

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function state(name, text) {
    place("state").dataset.state = name;
    place("state").textContent = text;
  }

  function number(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return Array.isArray(value) ? value.join(", ") : String(value);
    if (Number.isInteger(value) || Math.abs(value) >= 1e4) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(4)));
  }

  function listModels(models, name) {
    place("models").replaceChildren(...models.map((one) => {
      const told = { href: `#${encodeURIComponent(one.name)}`, "data-ready": one.ready, title: one.failure || "" };
      const made = element("a", one.name, one.name === name ? { ...told, "aria-current": "page" } : told);
      made.append(element("small", one.ready ? number(one.events) : "not served"));
      return made;
    }));
  }

  // On a phone each row is a card, in which a cell says what it is.
  function table(id, rows, columns) {
    place(id).hidden = rows.length === 0;
    const [head, body] = place(id).querySelectorAll("thead, tbody");
    const numeric = columns.filter((column) => rows.some((row) => typeof row[column] === "number" && column !== "at"));
    const cell = (kind, column, text) => element(kind, text, {
      "data-name": column, ...(numeric.includes(column) ? { class: "number" } : {}),
    });
    const top = element("tr", "");
    top.append(...columns.map((column) => cell("th", column, column)));
    head.replaceChildren(top);
    body.replaceChildren(...rows.slice(0, phone.matches ? 10 : 50).map((row) => {
      const line = element("tr", "");
      line.append(...columns.map((column) => cell("td", column, column === "at" ? time(row.at) : number(row[column]))));
      return line;
    }));
  }

  const time = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");

  function switchesOf(chart) {
    const group = element("div", "", { class: "switches", role: "group", "aria-label": "features shown" });
    group.append(...chart.switches.map((line) => {
      const on = pressed.has(line.name) ? pressed.get(line.name) : line.on;
      const button = element("button", line.name, { type: "button", title: `${line.name}: ${line.why}`, "aria-pressed": on });
      button.style.setProperty("--own", `var(--${line.role})`);
      button.addEventListener("click", () => {
        pressed.set(line.name, button.getAttribute("aria-pressed") !== "true");
        button.setAttribute("aria-pressed", pressed.get(line.name));
        drawAll();
      });
      return button;
    }));
    return group;
  }

  function keyOf(chart) {
    const key = element("ul", "", { class: "key" });
    key.append(...chart.key.map((line) => {
      const item = element("li", line.name, { class: line.dash });
      item.style.setProperty("--own", `var(--${line.role})`);
      return item;
    }));
    return key;
  }

  function charts(model) {
    const all = model.charts || [];
    if ([...place("charts").children].map((own) => own.dataset.name).join() !== all.map((chart) => chart.name).join()) {
      place("charts").replaceChildren(...all.map((chart) => {
        const section = element("section", "", { "data-name": chart.name });
        const drawn = element("div", "", { class: "chart", id: `chart-${chart.name}`, role: "img", "aria-label": chart.title });
        section.append(element("h2", chart.title), element("p", ""), keyOf(chart), switchesOf(chart), drawn);
        return section;
      }));
    }
    all.forEach((chart) => {
      const section = place("charts").querySelector(`[data-name="${chart.name}"]`);
      section.querySelector("p").textContent = chart.caption;
      section.querySelector(".key").replaceWith(keyOf(chart));
      section.querySelector(".switches").replaceWith(switchesOf(chart));
      place(`chart-${chart.name}`).style.height = chart.height || "";
    });
    place("without").hidden = !model.without_weights;
    place("without").querySelector("p").textContent = `No weights are shown: ${model.without_weights}.`;
    figures = model.figures || {};
    drawAll();
  }

  // Where lines have switches, each is two traces: its band and itself.
  function drawAll() {
    for (const [name, figure] of Object.entries(figures)) {
      const switches = place(`chart-${name}`).parentElement.querySelectorAll(".switches button");
      const isOn = (k) => switches[Math.floor(k / 2)].getAttribute("aria-pressed") === "true";
      Charts.draw(place(`chart-${name}`), figure, figure.switched ? isOn : null);
    }
  }

  function show(model) {
    document.title = `${model.name} · onlinevi`;
    place("title").textContent = model.title || (model.failure ? "Not served" : `${model.name} has learned nothing yet`);
    const [lead, ...told] = model.failure ? [model.failure] : model.sentences || [`It waits for its first event.`];
    place("lead").textContent = lead || "";
    place("told").replaceChildren(...told.map((text) => element("li", text)));
    const [learn, predict] = [model.learn_ms, model.predict_ms].map((times) => times || [null, null]);
    const cards = model.failure ? [] : [
      ["events", number(model.number)],
      ...(model.cards || []).filter(([label]) => !["rows", "rows a second"].includes(label)),
      ["events a second", number(model.events_a_second)], ["waiting to be written", number(model.queued)],
      ["learn, ms", number(learn[0])], ["learn, ms at 99\u00a0%", number(learn[1])],
      ["predict, ms", number(predict[0])], ["predict, ms at 99\u00a0%", number(predict[1])],
    ];
    place("cards").replaceChildren(...cards.filter(([, value]) => value !== "–").map(([label, value]) => {
      const card = element("div", "");
      card.append(element("dt", label), element("dd", value));
      return card;
    }));
    charts(model);
    const said = Object.keys(model.recent[0] || {}).filter((name) => !["number", "id", "at"].includes(name));
    table("recent", model.recent, ["number", "id", "at", ...said]);
    table("refused", model.refused, ["at", "id", "status", "place", "reason"]);
    shown = model.name;
  }

  // Server-sent events by fetch, which can send a token.
  async function follow(name, stop) {
    const answer = await fetch(`/models/${encodeURIComponent(name)}/live`, { headers: headers(), signal: stop });
    if (!answer.ok) throw answer;
    state("live", "live");
    tries = 0;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const [, kind, data] = part.match(/^event: (.*)\ndata: ([^]*)$/); // a text may hold U+2028
        if (kind === "models") listModels(JSON.parse(data), name);
        if (kind === "model") show(JSON.parse(data));
      }
    }
  }

  async function list(name) {
    const answer = await fetch("/models", { headers: headers() });
    if (!answer.ok) throw answer;
    const { models } = await answer.json();
    listModels(models, name);
    return models;
  }

  async function first() {
    const models = await list(shown);
    if (models.length === 0) {
      state("live", "live");
      place("title").textContent = "No model yet";
      place("lead").textContent = "Make one: POST /models, or start the service with --new NAME --target COL.";
      return null;
    }
    return models[0].name;
  }

  async function run() {
    for (;;) {
      reading = new AbortController();
      try {
        const name = asked() || (await first());
        if (name) await follow(name, reading.signal);
        else await wait(2000);
      } catch (problem) {
        if (problem.name === "AbortError") continue;
        if (problem.status === 401 || problem.status === 403) {
          state("lost", "needs a token");
          place("entrance").hidden = false;
          await new Promise((entered) => { place("entrance").addEventListener("submit", entered, { once: true }); });
          continue;
        }
        if (problem.status === 404) {
          state("lost", `there is no model ${asked()}`);
          await list(null).catch(() => {}); // the service may have gone meanwhile
        }
      }
      if (!reading.signal.aborted && asked() + shown) {
        if (place("state").dataset.state === "live" && shown !== null) state("lost", "connection lost, trying again");
        await wait(RETRY[Math.min(tries++, RETRY.length - 1)]);
      }
    }
  }

  place("entrance").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", place("token").value.trim());
    place("token").value = "";
    place("entrance").hidden = true;
  });
  window.addEventListener("hashchange", () => { if (reading) reading.abort(); });
  Charts.whenChanged(drawAll);
  run();
})();
