package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
)

// help is one screen about a command: how it is called, what it does, its
// options, examples and exit codes.
func help(t *tool, c *command) string {
	var b strings.Builder
	name := c.fullName(t)
	lead := "usage: "
	for line := range strings.SplitSeq(c.synopsis, "\n") {
		if rest, continued := strings.CutPrefix(line, " "); continued {
			fmt.Fprintf(&b, "%*s%s\n", len(lead)+len(name)+1, "", rest)
			continue
		}
		b.WriteString(strings.TrimSuffix(lead+name+" "+line, " ") + "\n")
		lead = "   or: "
	}
	fmt.Fprintf(&b, "\n%s\n\n", strings.TrimSpace(c.about))
	if c == t.root {
		b.WriteString("COMMANDS\n")
		table(&b, func(row func(cells ...string)) {
			for _, c := range t.commands {
				row(c.name, c.summary)
			}
		})
		b.WriteString("\n")
	}
	b.WriteString("OPTIONS\n")
	table(&b, func(row func(cells ...string)) {
		for _, f := range c.flags {
			if !hidden(f) {
				row(describeFlag(f))
			}
		}
	})
	b.WriteString("\nEXAMPLES\n")
	for line := range strings.Lines(strings.TrimSpace(c.examples) + "\n") {
		b.WriteString("  " + line)
	}
	b.WriteString("\nEXIT STATUS\n")
	table(&b, func(row func(cells ...string)) {
		for _, code := range exitTable {
			switch {
			case code.code == codeUnexpected && c.one != "":
				row(code.name(), c.one+", or an unexpected failure")
			case slices.Contains(c.exits, code.code):
				row(code.name(), code.meaning)
			}
		}
	})
	var always []string
	for _, code := range exitTable {
		if code.always {
			always = append(always, code.name()+" "+code.meaning)
		}
	}
	fmt.Fprintf(&b, "  %s\n", strings.Join(always, ", "))
	return b.String()
}

// table writes rows of two aligned columns.
func table(b *strings.Builder, fill func(row func(cells ...string))) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fill(func(cells ...string) { fmt.Fprintf(w, "  %s\n", strings.Join(cells, "\t")) })
	w.Flush()
}

// describeFlag is an option's left and right column.
func describeFlag(f cli.Flag) (left, right string) {
	names := slices.Clone(f.Names())
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) })
	for i, n := range names {
		names[i] = dashed(n)
	}
	left = strings.Join(names, ", ")
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return left, ""
	}
	right = doc.GetUsage()
	if placeholder, rest, ok := strings.Cut(strings.TrimPrefix(right, "`"), "`"); ok {
		left, right = left+" "+placeholder, strings.TrimSpace(rest)
	}
	return left, right
}
