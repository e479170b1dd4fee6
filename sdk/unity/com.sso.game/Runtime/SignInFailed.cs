using System;

namespace Sso
{
    /// <summary>Why a sign-in, or another call, did not succeed.</summary>
    public enum Reason
    {
        Cancelled,
        Denied,
        Expired,
        Closed,
        Refused,
        Banned,
        Invalid,
        NoGuests,
        SignInNeeded,
        Unavailable,
        NotAService,
    }

    public sealed class Ban
    {
        public string Reason = "";
        /// <summary>Unix seconds; null: for ever.</summary>
        public long? Until;
        public string AppealUrl = "";
    }

    /// <summary>The message is for developers; a game shows the player a text of its own for each reason.</summary>
    public sealed class SignInFailed : Exception
    {
        public SignInFailed(Reason reason, string message, string record = "", Ban ban = null) : base(message)
        {
            Reason = reason;
            Record = record;
            Ban = ban;
        }

        public Reason Reason { get; }

        /// <summary>The id of the service's record of a refusal, if it gave one.</summary>
        public string Record { get; }

        public Ban Ban { get; }

        internal static SignInFailed GaveUp() => new SignInFailed(Reason.Cancelled, "the player gave up");

        /// <summary>The failure that an answer with the status ERROR means.</summary>
        internal static SignInFailed Of(Answer answer)
        {
            string error = answer.Body["error"].Text;
            Json ban = answer.Body["ban"];
            if (error == "banned" && ban.IsObject)
            {
                var found = new Ban { Reason = ban["reason"].Text, AppealUrl = ban["appeal_url"].Text };
                if (ban["until"].IsNumber) found.Until = ban["until"].Integer;
                return new SignInFailed(Reason.Banned, "the player is banned", "", found);
            }
            switch (error)
            {
                case "session denied": return new SignInFailed(Reason.Denied, error);
                case "session expired": return new SignInFailed(Reason.Expired, error);
                case "session closed": return new SignInFailed(Reason.Closed, error);
            }
            if (answer.Status == 401 || answer.Status == 403)
            {
                return new SignInFailed(Reason.Refused, error, IsRecord(error) ? error : "");
            }
            if (answer.Status == 429 || answer.Status >= 500) return new SignInFailed(Reason.Unavailable, error);
            return new SignInFailed(Reason.Invalid, error);
        }

        private static bool IsRecord(string text)
        {
            if (text.Length != 16) return false;
            foreach (char c in text)
            {
                if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
            }
            return true;
        }
    }
}
