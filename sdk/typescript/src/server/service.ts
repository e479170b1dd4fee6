import { type Change, followChanges } from "./changes.js";
import { RequestFailed } from "./failure.js";
import { AccessToken, type Credentials, post } from "./requests.js";

const MAX_QUESTIONS = 100; // in one request

export interface Question {
  userId: string;
  applicationId: number;
  rule: string;
}

/** The service, or a replica of it. A replica on the same machine needs no credentials. */
export class Service {
  private readonly baseUrl: string;
  private readonly token: AccessToken | null;

  constructor(baseUrl: string, credentials?: Credentials) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.token = credentials ? new AccessToken(this.baseUrl, credentials) : null;
  }

  /** Returns whether each user has the rule at the application. What may not be asked is false. */
  async check(questions: readonly Question[]): Promise<boolean[]> {
    const answers: boolean[] = [];
    for (let start = 0; start < questions.length; start += MAX_QUESTIONS) {
      answers.push(...(await this.ask(questions.slice(start, start + MAX_QUESTIONS))));
    }
    return answers;
  }

  async may(userId: string, applicationId: number, rule: string): Promise<boolean> {
    return (await this.check([{ userId, applicationId, rule }]))[0] === true;
  }

  /** Yields the changes after a cursor, until the signal is aborted or the loop is left. */
  changes(options: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<Change> {
    if (!this.token) throw new RequestFailed("refused", "the stream of changes needs credentials");
    return followChanges(this.baseUrl, this.token, options.after, options.signal);
  }

  private async ask(questions: readonly Question[]): Promise<boolean[]> {
    const evaluations = questions.map(({ userId, applicationId, rule }) => ({
      subject: { type: "user", id: userId },
      action: { name: rule },
      resource: { type: "application", id: String(applicationId) },
    }));
    const body = await post(`${this.baseUrl}/access/v1/evaluations`, { evaluations }, this.token);
    const decisions = (body.evaluations ?? []) as { decision?: unknown }[];
    const answers = Array.isArray(decisions) ? decisions.map((item) => item?.decision) : [];
    if (answers.length !== questions.length || !answers.every((answer) => typeof answer === "boolean")) {
      throw new RequestFailed("not_a_service", "the answers do not fit the questions");
    }
    return answers as boolean[];
  }
}
