"use strict";
// Draws a figure in the page's own colours: `Charts.draw(place, figure)`, again when these or the width change.
const Charts = (() => {
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

  // `show` says of each trace by its number whether it is to be seen; without it all are.
  function draw(place, figure, show) {
    const data = coloured(figure.data);
    if (show) data.forEach((trace, k) => { trace.visible = show(k); });
    const options = { displayModeBar: false, responsive: true };
    return Plotly.react(place, data, layout(figure), options).then(() => { place.dataset.drawn = "yes"; });
  }

  function whenChanged(redraw) {
    narrow.addEventListener("change", redraw);
    dark.addEventListener("change", redraw);
  }

  return { draw, whenChanged };
})();
