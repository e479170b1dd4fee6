// How results of the search are sorted. Sphinx gives a page the same score wherever it has the words, and finds nothing if
// one word is missing. Here a word counts more in the title of a page than in a heading, more in a heading than in the text,
// more if few pages have it, and less on a page of many words. A page that lacks some of the words comes later.
const IN_TITLE = 4;
const IN_HEADING = 3;
const IN_TEXT = 1;
const IN_PART_OF_A_WORD = 0.5;
const BEST_SCORE = 30;
const MAX_RESULTS = 30; // the browser reads each page that is shown, for its summary

// A heading that has the words of the search in their order comes before pages that only have them.
Scorer.score = ([, , anchor, , score]) => (anchor ? score + 20 : score);

const asList = (files) => (files === undefined ? [] : [files].flat());

const pageSizes = () => {
  const sizes = new Array(Search._index.docnames.length).fill(1);
  Object.values(Search._index.terms).forEach((files) => asList(files).forEach((file) => sizes[file]++));
  return sizes;
};

const stemmedTitles = () => {
  const stemmer = new Stemmer();
  return Search._index.titles.map((title) => splitQuery(title.toLowerCase()).map((word) => stemmer.stemWord(word)));
};

// Returns how well each page has the word: a map of file to value.
const pagesWith = (word, titles, sizes) => {
  const { terms, titleterms } = Search._index;
  const values = new Map();
  const raise = (file, value) => values.set(file, Math.max(values.get(file) ?? 0, value));
  const inText = (file) => Math.min(1, Math.sqrt(300 / sizes[file]));
  asList(Object.hasOwn(terms, word) ? terms[word] : []).forEach((file) => raise(file, IN_TEXT * inText(file)));
  asList(Object.hasOwn(titleterms, word) ? titleterms[word] : []).forEach((file) =>
    raise(file, titles[file].includes(word) ? IN_TITLE : IN_HEADING),
  );
  if (values.size || word.length < 3) return values;
  for (const all of [terms, titleterms])
    for (const [term, files] of Object.entries(all))
      if (term.includes(word)) asList(files).forEach((file) => raise(file, IN_PART_OF_A_WORD * inText(file)));
  return values;
};

Search.performTermsSearch = (searchTerms, excludedTerms) => {
  const { docnames, filenames, titles, terms, titleterms } = Search._index;
  const [stemmed, sizes] = [stemmedTitles(), pageSizes()];
  const excluded = new Set([...excludedTerms].flatMap((word) => [...asList(terms[word]), ...asList(titleterms[word])]));
  const scores = new Map();
  const counts = new Map();
  let best = 0;
  for (const word of searchTerms) {
    const values = pagesWith(word, stemmed, sizes);
    const rarity = Math.log(1 + docnames.length / Math.max(1, values.size));
    best += IN_TITLE * rarity;
    for (const [file, value] of values) {
      scores.set(file, (scores.get(file) ?? 0) + rarity * value);
      counts.set(file, (counts.get(file) ?? 0) + 1);
    }
  }
  const part = (file) => counts.get(file) / searchTerms.size;
  return [...scores.keys()]
    .filter((file) => !excluded.has(file) && part(file) >= 0.5)
    .map((file) => [file, (BEST_SCORE * scores.get(file) * part(file)) / best])
    .sort(([, one], [, other]) => other - one)
    .slice(0, MAX_RESULTS)
    .map(([file, score]) => [docnames[file], titles[file], "", null, score, filenames[file], SearchResultKind.text]);
};
