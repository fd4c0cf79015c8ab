// A stand-in for a judge model: it answers as llm-rubric asks, from the length of the prompt's answer.
module.exports = class {
  constructor(options) { this.options = options; }
  id() { return (this.options && this.options.config && this.options.config.name) || 'mock-judge'; }
  async callApi(prompt) {
    const user = prompt.startsWith('[') ? JSON.parse(prompt).at(-1).content : prompt;
    const out = (user.match(/<Output>\s*([\s\S]*?)\s*<\/Output>/) || [null, user])[1];
    if (/Factual|expert answer/i.test(user)) return { output: JSON.stringify({ category: 'A', reason: 'A subset.' }) };
    if (/Rome/.test(out)) return { output: 'I would rather not say.', tokenUsage: { total: 9, prompt: 6, completion: 3 } };
    if (/Berlin/.test(out)) return { error: 'the stand-in judge is down' };
    const pass = /Paris|4/.test(out);
    return { output: JSON.stringify({ reason: pass ? 'It names the right answer.' : 'It does not name the right answer.', score: pass ? 0.9 : 0.2, pass }), tokenUsage: { total: 12, prompt: 8, completion: 4 } };
  }
};
