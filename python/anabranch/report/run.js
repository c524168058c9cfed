// What the report of a run adds to its charts: a click on a retransmission says why it was sent.
"use strict";
document.addEventListener("anabranch-charts", () => {
  const why = document.getElementById("why");
  if (!why) return;
  const { packets, episodes } = JSON.parse(why.textContent);
  const told = document.getElementById("why-told");
  anabranchCharts.pick("sequence", packets, (index) => {
    told.textContent = index < 0 ? told.dataset.hint : packets[index][2] + "\n\n" + episodes[packets[index][3]];
  });
});
