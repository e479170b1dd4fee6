// Solves the puzzle of a form: finds a number whose SHA-256 digest with the nonce begins with enough zero bits.
// It works in short slices, so that the page stays responsive. A form that is sent early waits for the solution.
"use strict";

(() => {
  const SLICE_MS = 25;
  const K = new Int32Array(64);
  const START = new Int32Array(8);
  let found = 0;
  for (let candidate = 2; found < 64; candidate++) {
    let prime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) prime = prime && candidate % divisor !== 0;
    if (!prime) continue;
    const fraction = (root) => ((root - Math.floor(root)) * 4294967296) | 0;
    if (found < 8) START[found] = fraction(Math.sqrt(candidate));
    K[found++] = fraction(Math.cbrt(candidate));
  }
  const w = new Int32Array(64);

  // The first word of the SHA-256 digest of a text of less than 56 ASCII characters.
  function firstWord(text) {
    w.fill(0, 0, 16);
    for (let i = 0; i < text.length; i++) w[i >> 2] |= text.charCodeAt(i) << (24 - 8 * (i & 3));
    w[text.length >> 2] |= 0x80 << (24 - 8 * (text.length & 3));
    w[15] = text.length * 8;
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let a = START[0], b = START[1], c = START[2], d = START[3];
    let e = START[4], f = START[5], g = START[6], h = START[7];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    return (a + START[0]) | 0;
  }

  for (const box of document.querySelectorAll(".work[data-nonce]")) {
    const form = box.closest("form");
    const solution = form.elements.namedItem("solution");
    const bar = box.querySelector("progress");
    const bits = Number(box.dataset.bits);
    const prefix = `${box.dataset.nonce}.`;
    let number = 0, waiting = null;
    if (solution.value) continue;

    form.addEventListener("submit", (event) => {
      if (solution.value) return;
      event.preventDefault();
      waiting = { button: event.submitter };
      box.hidden = false;
      form.setAttribute("aria-busy", "true");
    });

    const work = () => {
      const end = performance.now() + SLICE_MS;
      while (performance.now() < end) {
        for (let i = 0; i < 500; i++, number++) {
          if (firstWord(prefix + number) >>> (32 - bits)) continue;
          solution.value = String(number);
          bar.value = 100;
          if (waiting) form.requestSubmit(waiting.button);
          return;
        }
      }
      bar.value = 100 * (1 - Math.exp(-number / 2 ** bits));
      setTimeout(work, 0);
    };
    setTimeout(work, 0);
  }
})();
