"use strict";
// Draws the figures that the page carries, with the features that are switched on.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const switches = [...document.querySelectorAll(".switches button")];

  // A feature is two traces: its band and its line.
  const isOn = (k) => switches[Math.floor(k / 2)].getAttribute("aria-pressed") === "true";

  function draw(name) {
    const figure = figures[name];
    Charts.draw(document.getElementById(`chart-${name}`), figure, figure.switched ? isOn : null);
  }

  const drawAll = () => Object.keys(figures).forEach(draw);
  for (const button of switches) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      draw("posterior");
    });
  }
  Charts.whenChanged(drawAll);
  drawAll();
})();
