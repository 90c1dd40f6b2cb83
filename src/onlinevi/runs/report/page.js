"use strict";
// Draws the figures that the page carries, in the page's own colours, and again when these or the width change.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const switches = document.querySelectorAll(".switches button");
  const narrow = matchMedia("(max-width: 640px)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  const colour = (role) => getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
  const soft = () => (dark.matches ? "2e" : "24");

  // Colours are roles in the figures: only under these keys, so that no name in the data is taken for one.
  function coloured(value, key) {
    if (typeof value === "string") return key === "color" ? colour(value) : key === "fillcolor" ? colour(value) + soft() : value;
    if (Array.isArray(value)) return value.map((own) => coloured(own));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, coloured(own, name)]));
  }

  function axis(own) {
    return {
      gridcolor: colour("line"), zerolinecolor: colour("quiet"), linecolor: colour("line"),
      tickfont: { color: colour("quiet"), size: 12 }, automargin: true, ...own,
      title: { ...own.title, font: { color: colour("quiet"), size: 12 }, standoff: 8 },
    };
  }

  function labels(figure) {
    return figure.labels.map((label) => ({
      text: label.text, x: 1, xref: "paper", xanchor: "left", xshift: 8, y: label.y, yref: "paper", yanchor: "middle",
      showarrow: false, align: "left", font: { color: colour(label.color), size: 13 },
    }));
  }

  function layout(figure) {
    const beside = figure.labels.length > 0 && !narrow.matches;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
      font: { family: getComputedStyle(document.body).fontFamily, color: colour("ink"), size: 13 },
      margin: { l: 8, r: beside ? 132 : 14, t: 12, b: 8 },
      xaxis: { ...axis(figure.xaxis), showgrid: false, showline: true, ticks: "outside", ticklen: 4, tickcolor: colour("line") },
      yaxis: axis(figure.yaxis),
      annotations: beside ? labels(figure) : [],
      hovermode: "closest", dragmode: coarse.matches ? false : "zoom",
      hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") } },
    };
  }

  // A feature is two traces: its band and its line.
  function traces(figure) {
    const data = coloured(figure.data);
    for (const button of figure.switched ? switches : []) {
      const k = 2 * Number(button.dataset.feature);
      data[k].visible = data[k + 1].visible = button.getAttribute("aria-pressed") === "true";
    }
    return data;
  }

  function draw(name) {
    const place = document.getElementById(`chart-${name}`);
    const options = { displayModeBar: false, responsive: true };
    Plotly.react(place, traces(figures[name]), layout(figures[name]), options).then(() => { place.dataset.drawn = "yes"; });
  }

  const drawAll = () => Object.keys(figures).forEach(draw);
  for (const button of switches) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      draw("posterior");
    });
  }
  narrow.addEventListener("change", drawAll);
  dark.addEventListener("change", drawAll);
  drawAll();
})();
