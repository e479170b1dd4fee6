/** Why a user JWT is not accepted. */
export type RefusedReason =
  | "malformed"
  | "signature"
  | "unknown_key"
  | "issuer"
  | "expired"
  | "factor"
  | "unavailable";

export class PlayerRefused extends Error {
  constructor(
    readonly reason: RefusedReason,
    message: string,
  ) {
    super(message);
  }
}

/** Why a request to the service did not succeed. */
export type FailedReason = "refused" | "invalid" | "unavailable" | "not_a_service";

export class RequestFailed extends Error {
  constructor(
    readonly reason: FailedReason,
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}

/** Why a webhook is not accepted. */
export class WebhookRefused extends Error {
  constructor(
    readonly reason: "malformed" | "signature" | "old",
    message: string,
  ) {
    super(message);
  }
}
