package acphost

// A CommandParser takes command lines apart, as a shell does. Its method is
// called from several goroutines. It has to return for every text, in bounded
// time and memory.
type CommandParser interface {
	ParseCommand(line string) CommandLine
}

// A CommandLine is what a shell would make of a text.
type CommandLine struct {
	// Parts are the simple commands in the line, wherever they stand. A command
	// that another one runs, as sudo or xargs do, follows it.
	Parts []CommandPart
	// Unsure says why the line may run more than its parts, in a few words, such
	// as "python -c runs text"; "" means that it does not.
	Unsure string
	// Normal is the line in a form that lines have in common which differ in
	// nothing that matters, such as white space; "" means that there is none.
	Normal string
	// Moves are the directories that the line changes to, in their order. One that
	// is open without pieces stands for any.
	Moves []CommandWord
	// Values are what the line sets variables to, by their names. A variable that
	// is not in it may have any value.
	Values map[string][]CommandWord
	// Acts says what the line does itself, beside running its parts, which keeps it
	// from being harmless, in a few words, such as "it runs something in the
	// background"; "" means nothing. See [Policy.Harmless].
	Acts string
}

// A CommandPart is one simple command of a line.
type CommandPart struct {
	// Source is the text of the command, without redirections.
	Source string
	// Sets are the variables that are set for the command, as NAME=value.
	Sets []string
	// Words are the name of the program and its arguments.
	Words []CommandWord
	// Options are the words that make the program run something, or write to a
	// file. A wildcard does not cover them.
	Options []CommandOption

	// Wrapper says that the program does nothing but run another one, which is
	// a part of its own, as nohup and timeout do.
	Wrapper bool
	// Opaque says that it is not known whether the program runs what its words
	// say. Rules that deny or ask read each of them as a command line, too.
	Opaque bool
	// Forms are what the command is without the options between its program and
	// its subcommand, such as git push for git -C dir push. Only rules that deny
	// or ask are compared with them.
	Forms []CommandForm
	// By is the number of the part that runs this one, counted from 1, or 0.
	By int
	// At is which word of that part is the program of this one, or 0 if none is.
	At int

	// Runs are commands that the program may run although they are not among its
	// words: the values of variables, such as PAGER, and what a script says. They
	// are compared with rules that deny or ask. A rule that allows the part names
	// the variable or the option.
	Runs []CommandWord
	// Writes and Reads are the files that redirections name.
	Writes, Reads []CommandWord
	// Dir is the directory in which the line has changed to before, relative
	// or absolute; "" means that it has not.
	Dir CommandWord
	// In are the directories in which options have the program work, as in
	// git -C dir. A relative one is in the directory of the command.
	In []CommandWord
	// Harmless is what the command reads if it is known to do nothing but read and
	// print; nil means that this is not known. See [Policy.Harmless].
	Harmless *CommandReads
}

// A CommandReads is what a command reads that does nothing else.
type CommandReads struct {
	Files []CommandFile
	// Settings is git or go if the command is one of that program, which may run what
	// settings of its directory name. Only a caller that keeps it from doing so may
	// take the command for harmless.
	Settings string
	// In is the directory in which Settings has the program work, "" if that is the
	// directory of the command.
	In string
}

// A CommandFile is a file or a directory that a command reads. The word may have a
// glob, or variables whose values the line sets.
type CommandFile struct {
	CommandWord
	Entry   bool     // only that it is there, its properties, or the names in it
	Deep    bool     // what is below it, too
	Follow  bool     // and through links
	Plain   bool     // and the names there must be words of a shell, and no options
	Only    []string // of the files below only those with names like these; nil means all
	Options bool     // the word is not behind --, so that what a glob finds may be options
}

// A CommandForm is another way to write a command.
type CommandForm struct {
	Words []CommandWord
	// Unsure says that the command may mean something else, since one of its
	// options is not known.
	Unsure bool
}

// A CommandWord is a word of a command.
type CommandWord struct {
	// Text is the word after quotes and escapes are resolved or, of an open
	// word, what it begins with.
	Text string
	// Open says that something follows that only the shell knows: the value of
	// a variable, the names of files.
	Open bool
	// Source is the word as it is written.
	Source string
	// Pieces are what is known of an open word, in order; nil means that it is no
	// more than Text.
	Pieces []CommandPiece
}

// A CommandPiece is a piece of an open word: text or, if Open is set, something
// that only the shell knows.
type CommandPiece struct {
	Text string
	Open bool
	// Name says what an open piece is: the name of a variable, "*" or "?" for what
	// these stand for in the names of files, "#" for text without a slash or a dot,
	// such as a number, "{}" for names that another program finds, as for xargs,
	// ".." for the working directory or one above it; "" is anything.
	Name string
}

// A CommandOption is an option that runs something, or writes to a file.
type CommandOption struct {
	Word int    // which of the words has it
	Name string // as it is written, such as "-exec", "--outp" or "-o"
	Does string // what it does, such as "runs a program"
}
