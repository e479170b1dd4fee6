// A Cerbos server at a Unix socket, asked over gRPC. Its CPU time is that of the server; this client's is not counted.
import { readFileSync } from "node:fs";
import { GRPC } from "@cerbos/grpc";
import { model, pairs, report } from "./measure.mjs";

const client = new GRPC(`unix:${model.socket}`, { tls: false });
const actions = Array.from({ length: model.rules }, (_, rule) => `rule${rule}`);
const resource = (area) => ({ kind: `area${area}`, id: `area${area}` });
const areas = Array.from({ length: model.roles }, (_, area) => ({ resource: resource(area), actions }));
const principal = ([id, roles]) => ({ id, roles: roles.map((role) => `role${role}`) });

async function askOne(user, area, rule) {
  return client.isAllowed({ principal: principal(user), resource: resource(area), action: `rule${rule}` });
}

async function askAll(user) {
  const answered = await client.checkResources({ principal: principal(user), resources: areas });
  return pairs.map(([area, rule]) => answered.isAllowed({ resource: resource(area), action: `rule${rule}` }));
}

function cpuSeconds() {
  const fields = readFileSync(`/proc/${model.pid}/stat`, "ascii").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / model.tick;
}

await report(askOne, askAll, cpuSeconds, 16);
client.close?.();
