export { type Change } from "./changes.js";
export { type FailedReason, PlayerRefused, type RefusedReason, RequestFailed, WebhookRefused } from "./failure.js";
export { type PlayerOptions, playerHook, requirePlayer, requireRule, ruleHook } from "./middleware.js";
export { type Credentials } from "./requests.js";
export { type Question, Service } from "./service.js";
export { type VerifiedPlayer, Verifier, type VerifierOptions } from "./verifier.js";
export { type Webhook, readWebhook } from "./webhook.js";
