// The types of Unity's editor and test runner that the package uses. They do nothing.
using System;

namespace UnityEditor
{
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class MenuItem : Attribute
    {
        public MenuItem(string path) { }
    }

    public class EditorWindow : UnityEngine.Object
    {
        public static T GetWindow<T>(string title) where T : EditorWindow => null;
        public void Repaint() { }
    }

    public static class EditorPrefs
    {
        public static string GetString(string name, string otherwise) => otherwise;
        public static void SetString(string name, string value) { }
    }

    public static class EditorGUILayout
    {
        public static string TextField(string label, string text) => text;
    }
}
