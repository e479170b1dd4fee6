export const metadata = { title: "Next.js site" };

export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}
