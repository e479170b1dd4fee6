using System.Collections.Generic;
using System.Threading;
using UnityEditor;
using UnityEngine;

namespace Sso
{
    /// <summary>Window > Single sign-on: tries the sign-in at an address, without a scene.</summary>
    public sealed class SignInWindow : EditorWindow
    {
        private const string AddressName = "sso.address";
        private CancellationTokenSource running;
        private string address;
        private string shown = "";

        [MenuItem("Window/Single sign-on")]
        public static void Open()
        {
            GetWindow<SignInWindow>("Single sign-on");
        }

        private void OnEnable()
        {
            address = EditorPrefs.GetString(AddressName, "http://localhost:8000");
        }

        private void OnDisable()
        {
            running?.Cancel(); // the link is of no use any more
        }

        private void OnGUI()
        {
            address = EditorGUILayout.TextField("Address of the service", address);
            if (running == null && GUILayout.Button("Try the sign-in")) Try();
            else if (running != null && GUILayout.Button("Cancel")) running.Cancel();
            GUILayout.Label(shown);
        }

        private async void Try()
        {
            EditorPrefs.SetString(AddressName, address);
            running = new CancellationTokenSource();
            var game = new Game(address, new UnityTransport(), new MemoryStore(), "the editor of Unity");
            try
            {
                Player player = await game.SignIn(new SignInOptions { ShowLink = ShowLink, ShowStage = Show, Token = running.Token });
                await game.SignOut();
                Show("Signed in as " + player.Nick + ", user " + player.UserId + ". The sign-in was ended again.");
            }
            catch (SignInFailed failed)
            {
                Show(failed.Reason + ": " + failed.Message);
            }
            finally
            {
                running = null;
            }
        }

        private void ShowLink(string url, string words)
        {
            Show("The page must show: " + words + "\n" + url);
            Application.OpenURL(url);
        }

        private void Show(string text)
        {
            shown = text;
            Repaint();
        }

        /// <summary>What is tried is not kept.</summary>
        private sealed class MemoryStore : IStore
        {
            private readonly Dictionary<string, string> values = new Dictionary<string, string>();

            public string Get(string name) => values.TryGetValue(name, out string value) ? value : null;

            public void Set(string name, string value)
            {
                if (value == null) values.Remove(name);
                else values[name] = value;
            }
        }
    }
}
