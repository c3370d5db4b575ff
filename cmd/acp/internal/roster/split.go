package roster

import (
	"errors"
	"runtime"
	"strings"
	"unicode"
)

// IsCommandLine reports whether a text is read as a command line rather than as
// the name of an agent.
func IsCommandLine(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || c == '/' || c == '"' || c == '\'' || c == '\\'
	})
}

// Split splits a command line into words like a shell that knows words and quotes only: it runs and
// replaces nothing. Everything within single quotes is literal. Within double quotes a backslash
// makes a quote or a backslash literal. Elsewhere it makes any character literal, except on
// Windows, where it separates names.
func Split(s string) ([]string, error) { return split(s, runtime.GOOS == "windows") }

// split is Split with the rules of a system for backslashes.
func split(s string, windows bool) (words []string, err error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, errors.New("the command line has a zero byte in it")
	}
	var word strings.Builder
	in, quote := false, rune(0)
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		next := rune(-1)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteRune(c)
		case quote == '"' && c == '\\':
			if next == '"' || next == '\\' {
				i++
				c = next
			}
			word.WriteRune(c)
		case quote != 0:
			quote = 0
		case c == '"' || c == '\'':
			in, quote = true, c
		case c == '\\' && !windows:
			if next < 0 {
				return nil, errors.New("the command line ends with a backslash")
			}
			i++
			if next != '\n' { // which continues the line
				in = true
				word.WriteRune(next)
			}
		case unicode.IsSpace(c):
			if in {
				words = append(words, word.String())
			}
			in = false
			word.Reset()
		default:
			in = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote in the command line is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("the command line is empty")
	}
	return words, nil
}

// Join writes words as a command line, which [Split] splits into the same words.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote writes a word so that a shell reads it as that word.
func Quote(word string) string {
	plain := word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("@%_-+=:,./", c)
	})
	if plain {
		return word
	}
	if strings.ContainsRune(word, '\'') && !strings.ContainsAny(word, "\"\\$`!") {
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
