using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>Whether a user has a rule at an application.</summary>
    public sealed class Question
    {
        public string UserId { get; }
        public long ApplicationId { get; }
        public string Rule { get; }

        public Question(string userId, long applicationId, string rule)
        {
            UserId = userId;
            ApplicationId = applicationId;
            Rule = rule;
        }
    }

    /// <summary>The service, or a replica of it, which needs no credentials on the same machine. Failures are
    /// RequestFailed.</summary>
    public sealed class Service
    {
        private const int MaxQuestions = 100; // in one request
        private readonly string baseUrl;
        private readonly ServiceRequests requests;

        public Service(string baseUrl, string clientId = null, string clientSecret = null)
        {
            this.baseUrl = baseUrl.TrimEnd('/');
            requests = new ServiceRequests(this.baseUrl, clientId, clientSecret);
        }

        public async Task<bool> May(string userId, long applicationId, string rule) =>
            (await Check(new[] { new Question(userId, applicationId, rule) }).ConfigureAwait(false))[0];

        /// <summary>Returns whether each user has the rule at the application. What may not be asked is false.</summary>
        public async Task<IReadOnlyList<bool>> Check(IReadOnlyList<Question> questions)
        {
            var answers = new List<bool>();
            for (int start = 0; start < questions.Count; start += MaxQuestions)
            {
                List<Question> part = questions.Skip(start).Take(MaxQuestions).ToList();
                answers.AddRange(await Ask(part).ConfigureAwait(false));
            }
            return answers;
        }

        /// <summary>Calls <paramref name="handle"/> with each change after a cursor, until it returns false or the token is
        /// cancelled. What it throws ends the call, and leaves it unchanged.</summary>
        public Task Follow(string after, Func<Change, Task<bool>> handle, CancellationToken token = default(CancellationToken))
        {
            if (!requests.HasCredentials) throw new RequestFailed("refused", "the stream of changes needs credentials");
            return new ChangeStream(baseUrl, requests, handle).Follow(after, token);
        }

        private async Task<IEnumerable<bool>> Ask(IReadOnlyList<Question> questions)
        {
            string evaluations = "[" + string.Join(",", questions.Select(Evaluation)) + "]";
            string body = new JsonWriter().AddRaw("evaluations", evaluations).ToString();
            Json answer = await requests.Post("/access/v1/evaluations", body).ConfigureAwait(false);
            List<Json> decisions = answer["evaluations"].Items.Select(item => item["decision"]).ToList();
            if (decisions.Count != questions.Count || !decisions.All(decision => decision.IsBoolean))
            {
                throw new RequestFailed("not_a_service", "the answers do not fit the questions");
            }
            return decisions.Select(decision => decision.IsTrue);
        }

        private static string Evaluation(Question question)
        {
            JsonWriter subject = new JsonWriter().Add("type", "user").Add("id", question.UserId);
            JsonWriter resource = new JsonWriter().Add("type", "application").Add("id", question.ApplicationId.ToString());
            return new JsonWriter()
                .AddRaw("subject", subject.ToString())
                .AddRaw("action", new JsonWriter().Add("name", question.Rule).ToString())
                .AddRaw("resource", resource.ToString())
                .ToString();
        }
    }
}
