using System;
using System.IO;
using System.Text;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>Reads the lines of a response that goes on, as they arrive.</summary>
    internal sealed class LineReader
    {
        private readonly Stream stream;
        private readonly byte[] buffer = new byte[4096];
        private readonly MemoryStream line = new MemoryStream();
        private int at;
        private int end;

        public LineReader(Stream stream)
        {
            this.stream = stream;
        }

        /// <summary>Returns null at the end. A line that is not complete is dropped. Throws RequestFailed if one is too long.</summary>
        public async Task<string> Next()
        {
            while (!TakeLine())
            {
                at = 0;
                end = await stream.ReadAsync(buffer, 0, buffer.Length).ConfigureAwait(false);
                if (end == 0) return null;
            }
            string text = Encoding.UTF8.GetString(line.GetBuffer(), 0, (int)line.Length).TrimEnd('\r');
            line.SetLength(0);
            return text;
        }

        /// <summary>Takes what was read, up to the end of the line. Returns whether the line is complete.</summary>
        private bool TakeLine()
        {
            int found = Array.IndexOf(buffer, (byte)'\n', at, end - at);
            int until = found < 0 ? end : found;
            if (line.Length + until - at > Http.MaxBytes) throw new RequestFailed("not_a_service", "an event is too large");
            line.Write(buffer, at, until - at);
            at = found < 0 ? end : found + 1;
            return found >= 0;
        }
    }
}
