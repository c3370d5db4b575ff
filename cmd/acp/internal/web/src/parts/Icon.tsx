// Pictures of what kinds of tools do.

const paths: Record<string, string> = {
  read: "M3 2h7l3 3v9H3zM9.5 2v3.500H13M5.5 8.500h5M5.5 11h5",
  edit: "M2.5 13.500l.8-3.300L10.8 2.700l2.5 2.5-7.5 7.500zM9.3 4.200l2.5 2.5",
  delete: "M3 4.500h10M6 4.500V2.500h4v2M4.2 4.500l.6 9h6.400l.6-9M6.7 7v4M9.3 7v4",
  move: "M2 8h11M9.5 4.500L13 8l-3.5 3.500M2 4v8",
  search: "M7 2.500a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.300L14 14",
  execute: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.500h3.5",
  think: "M5.5 11.500C4 10.5 3.5 9 3.5 7a4.5 4.5 0 0 1 9 0c0 2-.5 3.5-2 4.500v1.500h-5zM6.5 14.500h3",
  fetch: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M2 8h12M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12",
  switch_mode: "M2 5h10M9 2.500L11.5 5 9 7.500M14 11H4M7 8.500L4.5 11 7 13.5",
  other: "M8 2.500l5 2.800v5.400L8 13.500l-5-2.800V5.300zM3 5.300l5 2.8 5-2.800M8 8.100v5.4",
};

const names: Record<string, string> = { switch_mode: "mode", other: "tool" };

/** Icon shows what kind of tool it is. */
export function Icon({ kind }: { kind: string }) {
  const known = Object.hasOwn(paths, kind) ? kind : "other";
  return (
    <svg class="icon" viewBox="0 0 16 16" role="img" aria-label={names[known] ?? known}>
      <path d={paths[known]} />
    </svg>
  );
}
