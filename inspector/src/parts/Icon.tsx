import {
  ArrowDown,
  ArrowLeftRight,
  ArrowUp,
  Bell,
  BellOff,
  Bot,
  Brain,
  Check,
  ChevronDown,
  ChevronLeft,
  ChevronRight,
  ChevronUp,
  Circle,
  CircleAlert,
  CircleCheck,
  CircleDot,
  CircleQuestionMark,
  Command,
  Copy,
  CornerDownRight,
  Download,
  Ellipsis,
  File,
  FilePen,
  Folder,
  GitFork,
  ListFilter,
  ListTodo,
  FastForward,
  Globe,
  type LucideIcon,
  Monitor,
  Moon,
  MoveRight,
  Paperclip,
  Pencil,
  Pin,
  Plus,
  RefreshCw,
  Search,
  Square,
  SquareTerminal,
  Sun,
  Trash,
  Upload,
  User,
  Wrench,
  X,
} from "lucide-react";

/** Every icon of the page, by what it stands for. */
const ICONS = {
  add: Plus,
  agent: Bot,
  alert: CircleAlert,
  ask: CircleQuestionMark,
  attach: Paperclip,
  back: ChevronLeft,
  bell: Bell,
  "bell-off": BellOff,
  check: Check,
  close: X,
  command: Command,
  copy: Copy,
  dark: Moon,
  delete: Trash,
  done: CircleCheck,
  down: ChevronDown,
  download: Download,
  edit: FilePen,
  execute: SquareTerminal,
  fetch: Globe,
  file: File,
  filter: ListFilter,
  folder: Folder,
  fork: GitFork,
  latest: ArrowDown,
  light: Sun,
  more: Ellipsis,
  move: MoveRight,
  now: FastForward,
  open: ChevronRight,
  other: Wrench,
  pencil: Pencil,
  pending: Circle,
  person: User,
  pin: Pin,
  plan: ListTodo,
  protocol: ArrowLeftRight,
  read: File,
  refresh: RefreshCw,
  running: CircleDot,
  search: Search,
  send: ArrowUp,
  steer: CornerDownRight,
  stop: Square,
  switch_mode: RefreshCw,
  system: Monitor,
  think: Brain,
  up: ChevronUp,
  upload: Upload,
} as const satisfies Record<string, LucideIcon>;

export type IconName = keyof typeof ICONS;

/** For the eye only: what it stands for has to be said by a label or by text beside it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  const Drawn = ICONS[name];
  return <Drawn className="icon" size={size} strokeWidth={1.75} aria-hidden="true" />;
}

/** At the end of a line that unfolds; it turns with its `details`. */
export function Fold() {
  return (
    <span className="fold-mark">
      <Icon name="open" size={14} />
    </span>
  );
}

/** The icon of a tool call's kind; kinds that are not known get a plain tool. */
export function iconOfTool(kind: string | null | undefined): IconName {
  return kind != null && kind in ICONS ? (kind as IconName) : "other";
}
