using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Sso
{
    /// <summary>JSON, as much as the answers of the service need. A member that is missing is null.</summary>
    internal sealed class Json
    {
        private static readonly Json Null = new Json();
        private object value;

        public string Text => value as string ?? "";
        public bool IsTrue => value is bool b && b;
        public bool IsBoolean => value is bool;
        public bool IsNumber => value is double;
        public double Number => value is double d ? d : 0;
        public long Integer => (long)Number;
        public bool IsObject => value is Dictionary<string, Json>;
        public IReadOnlyDictionary<string, Json> Members => value as Dictionary<string, Json> ?? new Dictionary<string, Json>();
        public IReadOnlyList<Json> Items => value as List<Json> ?? new List<Json>();
        public Json this[string name] =>
            value is Dictionary<string, Json> members && members.TryGetValue(name, out Json member) ? member : Null;
        public bool Has(string name) => value is Dictionary<string, Json> members && members.ContainsKey(name);
        /// <summary>A text or a number, as text.</summary>
        public string AsText => IsNumber ? Integer.ToString(CultureInfo.InvariantCulture) : Text;

        /// <summary>Returns null if the text is no JSON.</summary>
        public static Json Parse(string text)
        {
            try
            {
                var reader = new Reader(text);
                Json parsed = reader.Read(0);
                return reader.IsAtEnd ? parsed : null;
            }
            catch (FormatException)
            {
                return null;
            }
        }

        public static string Quote(string text)
        {
            var quoted = new StringBuilder("\"");
            foreach (char c in text)
            {
                if (c == '"' || c == '\\') quoted.Append('\\').Append(c);
                else if (c < ' ') quoted.Append("\\u").Append(((int)c).ToString("x4", CultureInfo.InvariantCulture));
                else quoted.Append(c);
            }
            return quoted.Append('"').ToString();
        }

        private sealed class Reader
        {
            private const int MaxDepth = 32;
            private readonly string text;
            private int at;

            public Reader(string text)
            {
                this.text = text;
            }

            public bool IsAtEnd
            {
                get
                {
                    Skip();
                    return at == text.Length;
                }
            }

            public Json Read(int depth)
            {
                Skip();
                if (depth > MaxDepth || at == text.Length) throw new FormatException();
                switch (text[at])
                {
                    case '{': return ReadObject(depth);
                    case '[': return ReadArray(depth);
                    case '"': return new Json { value = ReadText() };
                    case 't': return Word("true", true);
                    case 'f': return Word("false", false);
                    case 'n': return Word("null", null);
                    default: return ReadNumber();
                }
            }

            private void Skip()
            {
                while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0) at++;
            }

            private bool Take(char expected)
            {
                Skip();
                if (at == text.Length || text[at] != expected) return false;
                at++;
                return true;
            }

            private void Need(char expected)
            {
                if (!Take(expected)) throw new FormatException();
            }

            private Json Word(string word, object meaning)
            {
                if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) throw new FormatException();
                at += word.Length;
                return new Json { value = meaning };
            }

            private Json ReadObject(int depth)
            {
                var members = new Dictionary<string, Json>();
                at++;
                if (!Take('}'))
                {
                    do
                    {
                        Skip();
                        if (at == text.Length || text[at] != '"') throw new FormatException();
                        string name = ReadText();
                        Need(':');
                        if (members.ContainsKey(name)) throw new FormatException(); // readers differ in which one they take
                        members[name] = Read(depth + 1);
                    }
                    while (Take(','));
                    Need('}');
                }
                return new Json { value = members };
            }

            private Json ReadArray(int depth)
            {
                var items = new List<Json>();
                at++;
                if (!Take(']'))
                {
                    do items.Add(Read(depth + 1));
                    while (Take(','));
                    Need(']');
                }
                return new Json { value = items };
            }

            private Json ReadNumber()
            {
                int begin = at;
                while (at < text.Length && "+-.0123456789eE".IndexOf(text[at]) >= 0) at++;
                string number = text.Substring(begin, at - begin);
                if (!double.TryParse(number, NumberStyles.Float, CultureInfo.InvariantCulture, out double parsed))
                {
                    throw new FormatException();
                }
                return new Json { value = parsed };
            }

            private string ReadText()
            {
                var read = new StringBuilder();
                for (at++; at < text.Length && text[at] != '"'; at++)
                {
                    if (text[at] != '\\')
                    {
                        read.Append(text[at]);
                        continue;
                    }
                    if (++at == text.Length) throw new FormatException();
                    switch (text[at])
                    {
                        case 'b': read.Append('\b'); break;
                        case 'f': read.Append('\f'); break;
                        case 'n': read.Append('\n'); break;
                        case 'r': read.Append('\r'); break;
                        case 't': read.Append('\t'); break;
                        case 'u': read.Append(ReadUnit()); break;
                        default: read.Append(text[at]); break;
                    }
                }
                Need('"');
                return read.ToString();
            }

            private char ReadUnit()
            {
                if (at + 4 >= text.Length) throw new FormatException();
                string digits = text.Substring(at + 1, 4);
                at += 4;
                if (!ushort.TryParse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out ushort unit))
                {
                    throw new FormatException();
                }
                return (char)unit;
            }
        }
    }

    /// <summary>Writes an object, member by member.</summary>
    internal sealed class JsonWriter
    {
        private readonly StringBuilder body = new StringBuilder();

        public JsonWriter Add(string name, string value) => AddRaw(name, Json.Quote(value));

        public JsonWriter Add(string name, long value) => AddRaw(name, value.ToString(CultureInfo.InvariantCulture));

        public JsonWriter AddRaw(string name, string json)
        {
            if (body.Length > 0) body.Append(", ");
            body.Append(Json.Quote(name)).Append(": ").Append(json);
            return this;
        }

        public override string ToString() => "{" + body + "}";
    }
}
