// Formulas become pictures when a deck is built (inline SVG): katex would load fonts from a network.
export default {options: {math: 'mathjax'}, html: true};
