(() => {
  "use strict";
  const narrow = window.matchMedia("screen and (max-width: 820px)");
  const paperWidth = 690;
  const config = {
    responsive: true,
    displaylogo: false,
    showTips: false,
    // Plotly would offer to upload a chart to its company's server.
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const charts = Array.from(document.querySelectorAll(".chart"), (place) => ({
    place,
    ...JSON.parse(document.getElementById(place.dataset.source).textContent),
  }));
  const layout = (chart) => structuredClone(narrow.matches ? chart.narrow : chart.wide);

  for (const chart of charts) {
    Plotly.newPlot(chart.place, chart.traces, layout(chart), config);
  }
  narrow.addEventListener("change", () => {
    for (const chart of charts) {
      Plotly.react(chart.place, chart.place.data, layout(chart), config);
    }
  });
  window.addEventListener("beforeprint", () => {
    for (const chart of charts) {
      Plotly.relayout(chart.place, { width: paperWidth });
    }
  });
  window.addEventListener("afterprint", () => {
    for (const chart of charts) {
      Plotly.relayout(chart.place, { width: null, autosize: true });
    }
  });
})();
