// The types of Unity that the package uses, so that its code for Unity can be compiled without Unity. They do nothing.
using System;

namespace UnityEngine
{
    public class Object { }
    public class Component : Object { }
    public class Behaviour : Component { }
    public class MonoBehaviour : Behaviour { }

    public static class Application
    {
        public static void OpenURL(string url) { }
    }

    public static class Time
    {
        public static double realtimeSinceStartupAsDouble => 0;
    }

    public static class GUILayout
    {
        public static void Label(string text) { }
        public static bool Button(string text) => false;
    }

    public static class PlayerPrefs
    {
        public static bool HasKey(string name) => false;
        public static string GetString(string name) => "";
        public static void SetString(string name, string value) { }
        public static void DeleteKey(string name) { }
        public static void Save() { }
    }

    public class AsyncOperation
    {
        public bool isDone => true;
    }
}

namespace UnityEngine.Networking
{
    public class UploadHandler { }
    public class DownloadHandler
    {
        public string text => "";
    }
    public sealed class UploadHandlerRaw : UploadHandler
    {
        public UploadHandlerRaw(byte[] data) { }
    }
    public sealed class DownloadHandlerBuffer : DownloadHandler { }
    public class UnityWebRequestAsyncOperation : AsyncOperation { }

    public class UnityWebRequest : IDisposable
    {
        public enum Result
        {
            InProgress,
            Success,
            ConnectionError,
            ProtocolError,
            DataProcessingError,
        }

        public UnityWebRequest(string url, string method) { }
        public Result result => Result.ConnectionError;
        public UploadHandler uploadHandler { get; set; }
        public DownloadHandler downloadHandler { get; set; }
        public int timeout { get; set; }
        public int redirectLimit { get; set; }
        public long responseCode => 0;
        public ulong downloadedBytes => 0;
        public string error => "";
        public void SetRequestHeader(string name, string value) { }
        public string GetResponseHeader(string name) => null;
        public UnityWebRequestAsyncOperation SendWebRequest() => null;
        public void Abort() { }
        public void Dispose() { }
    }
}
