import { PlayerRefused, RequestFailed } from "./failure.js";
import type { Service } from "./service.js";
import type { VerifiedPlayer, Verifier } from "./verifier.js";

// What these functions use of Express and Fastify. Neither is a dependency.
interface Request {
  headers: Record<string, string | string[] | undefined>;
  player?: VerifiedPlayer;
}
interface ExpressResponse {
  status(code: number): this;
  set(headers: Record<string, string>): this;
  json(body: unknown): unknown;
}
interface FastifyReply {
  code(status: number): this;
  headers(headers: Record<string, string>): this;
  send(body: unknown): unknown;
}
interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: { status: "ERROR"; error: string };
}
export interface PlayerOptions {
  /** Also requires the factor of the player's device, as header Factor. */
  requireFactor?: boolean;
}
type Guard = (request: Request) => Promise<Refusal | null>;

/** Express: `app.use(requirePlayer(verifier))`. Sets `request.player`; others get 401, or 503 without keys. */
export const requirePlayer = (verifier: Verifier, options: PlayerOptions = {}) => forExpress(playerGuard(verifier, options));

/** Express: `app.post("/kick", requireRule(service, 10, "chat.kick"), …)`, after `requirePlayer`. Others get 403. */
export const requireRule = (service: Service, applicationId: number, rule: string) =>
  forExpress(ruleGuard(service, applicationId, rule));

/** Fastify: `app.addHook("preHandler", playerHook(verifier))`. */
export const playerHook = (verifier: Verifier, options: PlayerOptions = {}) => forFastify(playerGuard(verifier, options));

/** Fastify: `app.post("/kick", { preHandler: ruleHook(service, 10, "chat.kick") }, …)`, after `playerHook`. */
export const ruleHook = (service: Service, applicationId: number, rule: string) =>
  forFastify(ruleGuard(service, applicationId, rule));

/** A factor that is not required is not read: who has stolen a JWT would leave it out. */
function playerGuard(verifier: Verifier, { requireFactor = false }: PlayerOptions): Guard {
  return async (request) => {
    const jwt = /^Bearer +(\S+)$/i.exec(String(request.headers.authorization ?? ""))?.[1] ?? "";
    try {
      const factor = requireFactor ? String(request.headers.factor ?? "") : undefined;
      request.player = await verifier.verify(jwt, { factor });
      return null;
    } catch (error) {
      if (!(error instanceof PlayerRefused)) throw error;
      return error.reason === "unavailable" ? UNAVAILABLE : refusal(401, error.reason, { "WWW-Authenticate": "Bearer" });
    }
  };
}

function ruleGuard(service: Service, applicationId: number, rule: string): Guard {
  return async ({ player }) => {
    if (!player) return refusal(401, "sign in first", { "WWW-Authenticate": "Bearer" });
    try {
      return (await service.may(player.userId, applicationId, rule)) ? null : refusal(403, `not allowed: ${rule}`);
    } catch (error) {
      if (error instanceof RequestFailed) return UNAVAILABLE;
      throw error;
    }
  };
}

const refusal = (status: number, error: string, headers: Record<string, string> = {}): Refusal => ({
  status,
  headers,
  body: { status: "ERROR", error },
});

const UNAVAILABLE = refusal(503, "the sign-on service is unavailable", { "Retry-After": "5" });

function forExpress(guard: Guard) {
  return (request: Request, response: ExpressResponse, next: (error?: unknown) => void): void => {
    guard(request).then((refused) => {
      if (refused) response.status(refused.status).set(refused.headers).json(refused.body);
      else next();
    }, next);
  };
}

function forFastify(guard: Guard) {
  return async (request: object, reply: FastifyReply): Promise<unknown> => {
    const refused = await guard(request as Request);
    return refused ? reply.code(refused.status).headers(refused.headers).send(refused.body) : undefined;
  };
}
