import { auth, signIn, signOut } from "../auth.js";

export default async function Page() {
  const session = await auth();
  if (!session) {
    return (
      <form action={async () => { "use server"; await signIn("sso"); }}>
        <button>Sign in</button>
      </form>
    );
  }
  return (
    <form action={async () => { "use server"; await signOut(); }}>
      <p>{`Signed in as ${session.user.name} (${session.user.email}).`}</p>
      <button>Sign out</button>
    </form>
  );
}
