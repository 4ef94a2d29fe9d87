package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Each help is one screen of a terminal, says how the command is called, and
// has examples and exit codes.
func TestHelpIsOneScreen(t *testing.T) {
	t.Parallel()
	for _, tool := range []*tool{leaseTool(), landTool()} {
		for _, c := range append([]*command{tool.root}, tool.commands...) {
			name, text := c.fullName(tool), help(tool, c)
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if most := 40 + len(tool.commands)/2; len(lines) > most { // a tool's own lists its commands
				t.Errorf("%s -h has %d lines", name, len(lines))
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > 80 {
					t.Errorf("%s -h: %d characters in %q", name, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s -h: space at the end of %q", name, line)
				}
			}
			if !strings.HasPrefix(text, "usage: "+name) {
				t.Errorf("%s -h begins with %q", name, lines[0])
			}
			for _, want := range []string{"\nOPTIONS\n", "\nEXAMPLES\n  ", "\nEXIT STATUS\n", "0 done", "129 usage"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s -h lacks %q", name, want)
				}
			}
			for _, f := range c.flags {
				if left, right := describeFlag(f); !strings.HasPrefix(left, "-") || right == "" {
					t.Errorf("%s -h: option %q has no description", name, left)
				}
			}
		}
	}
}

// An option without a line of its own stands in another's.
func TestEveryOptionIsInTheHelp(t *testing.T) {
	t.Parallel()
	for _, tool := range []*tool{leaseTool(), landTool()} {
		for _, c := range append([]*command{tool.root}, tool.commands...) {
			text := help(tool, c)
			for _, f := range c.flags {
				if name := dashed(f.Names()[0]); !strings.Contains(text, name) {
					t.Errorf("%s -h does not have %s", c.fullName(tool), name)
				}
			}
		}
	}
}

// Every example is a command line that its command takes.
func TestExamplesAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, tool := range []*tool{leaseTool(), landTool()} {
		for _, c := range append([]*command{tool.root}, tool.commands...) {
			for line := range strings.Lines(strings.TrimSpace(c.examples)) {
				if !strings.Contains(line, tool.name) {
					t.Errorf("%s: example without %s: %s", c.fullName(tool), tool.name, line)
				}
			}
			for form := range strings.SplitSeq(c.synopsis, "\n") {
				for word := range strings.FieldsSeq(strings.NewReplacer("[", " ", "]", " ", "|", " ", "=", " ").Replace(form)) {
					if strings.HasPrefix(word, "-") && word != "--" && c.flag(strings.TrimLeft(word, "-")) == nil {
						t.Errorf("%s: the synopsis has %s, and the command has not", c.fullName(tool), word)
					}
				}
			}
		}
	}
}
