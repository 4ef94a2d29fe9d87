// Package hooks has the hooks that git lease installs, as they stand beside it.
// They are short on purpose: what they decide is decided by git lease hook.
package hooks

import "embed"

// Files are the hooks, by git's names for them. The line "tool=git-lease" of each
// says which executable it asks.
//
//go:embed pre-push pre-receive reference-transaction
var Files embed.FS
