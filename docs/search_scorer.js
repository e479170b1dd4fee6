// How results of the search are sorted: a heading that has the words of the search comes before pages that only have them.
var Scorer = {
  score: ([, , anchor, , score]) => (anchor ? score + 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
