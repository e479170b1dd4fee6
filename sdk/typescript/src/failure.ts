/** Why a sign-in, or another call, did not succeed. */
export type Reason =
  | "cancelled"
  | "denied"
  | "expired"
  | "closed"
  | "refused"
  | "banned"
  | "invalid"
  | "no_guests"
  | "sign_in_needed"
  | "unavailable"
  | "not_a_service";

export interface Ban {
  reason: string;
  until: number | null;
  appeal_url: string;
}

/** The message is for developers; a game shows the player a text of its own for each reason. */
export class SignInFailed extends Error {
  constructor(
    readonly reason: Reason,
    message: string,
    readonly record: string = "",
    readonly ban: Ban | null = null,
  ) {
    super(message);
  }
}

const ENDS: Record<string, Reason> = {
  "session denied": "denied",
  "session expired": "expired",
  "session closed": "closed",
};
const RECORD = /^[0-9a-f]{16}$/;

/** Returns the failure that an answer with the status ERROR means. */
export function failureOf(status: number, body: Record<string, unknown>): SignInFailed {
  const error = String(body.error ?? `HTTP ${status}`);
  if (error === "banned" && typeof body.ban === "object") {
    return new SignInFailed("banned", "the player is banned", "", body.ban as Ban);
  }
  if (error in ENDS) return new SignInFailed(ENDS[error]!, error);
  if (status === 403 || status === 401) return new SignInFailed("refused", error, RECORD.test(error) ? error : "");
  if (status === 429 || status >= 500) return new SignInFailed("unavailable", error);
  return new SignInFailed("invalid", error);
}
