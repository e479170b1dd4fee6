// Shared by the peers that are npm packages: reads the model, compares both forms of asking, and measures each.
import { readFileSync } from "node:fs";

export const model = JSON.parse(readFileSync(0));
export const pairs = [];
for (let area = 0; area < model.roles; area++) {
  for (let rule = 0; rule < model.rules; rule++) pairs.push([area, rule]);
}

// `connections` calls run at a time. Returns the CPU seconds of a call.
async function repeat(call, cpuSeconds, connections) {
  let count = 0;
  const started = cpuSeconds(), end = Date.now() + 1000 * model.seconds;
  const run = async (number) => {
    for (let turn = number; Date.now() < end; turn += connections, count++) await call(turn);
  };
  await Promise.all(Array.from({ length: connections }, (_, number) => run(number)));
  return (cpuSeconds() - started) / count;
}

export async function report(askOne, askAll, cpuSeconds, connections = 1) {
  const user = (turn) => model.users[turn % model.users.length];
  const answers = { one: [], many: [] };
  for (const each of model.users) {
    for (const [area, rule] of pairs) answers.one.push(await askOne(each, area, rule));
    answers.many.push(...(await askAll(each)));
  }
  const one = await repeat((turn) => askOne(user(turn), ...pairs[turn % pairs.length]), cpuSeconds, connections);
  const many = await repeat((turn) => askAll(user(turn)), cpuSeconds, connections);
  console.log(JSON.stringify({ answers, costs: [one, many / pairs.length] }));
}
