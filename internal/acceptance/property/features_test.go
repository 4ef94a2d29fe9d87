package property

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A feature is something that a case can have. Each of them has to be drawn in a
// campaign, or the campaign shows less than it claims.
type feature string

const (
	addition      feature = "change: addition"
	edition       feature = "change: content"
	deletion      feature = "change: deletion"
	renaming      feature = "change: rename"
	caseRenaming  feature = "change: case-only rename"
	modeChange    feature = "change: mode"
	linking       feature = "change: symlink"
	dirForFile    feature = "change: directory for a file"
	fileForDir    feature = "change: file for a directory"
	submoduleMove feature = "change: submodule"

	nameSpace   feature = "name: spaces"
	nameNewline feature = "name: newline"
	nameBytes   feature = "name: not UTF-8"
	nameSpecial feature = "name: special in a pathspec"

	filterCRLF feature = "filter: CRLF"
	filterRun  feature = "filter: a command, as git-lfs is one"
	filterNew  feature = "filter: .gitattributes changes"

	stagedPart   feature = "index: staged"
	stagedOther  feature = "index: staged, then changed again"
	stagedBack   feature = "index: staged, then taken back in the file"
	stagedGone   feature = "index: deletion staged"
	uncached     feature = "index: out of it, still on disk"
	intentToAdd  feature = "index: intent to add"
	forcedIgnore feature = "index: an ignored file was forced in"
	ignoredFile  feature = "ignored file"
	untracked    feature = "untracked file"

	scopePath      feature = "scope: a path"
	scopeDirectory feature = "scope: a directory"
	scopeWildcard  feature = "scope: a wildcard"
	scopeMagic     feature = "scope: pathspec magic"
	dirtyInScope   feature = "scope: staged and changed in it"
	dirtyOutside   feature = "scope: changes outside of it"

	wayPaths        feature = "way: paths"
	wayStaged       feature = "way: staged"
	wayCommits      feature = "way: commits as they are"
	waySquash       feature = "way: --squash"
	wayMerge        feature = "way: --merge"
	wayForward      feature = "way: --ff-only"
	wayHead         feature = "way: --head"
	wayPathsBeside  feature = "way: paths beside unlanded commits"
	wayStagedBeside feature = "way: staged beside unlanded commits"
	wayTwice        feature = "way: two landings, one after the other"

	repoSHA256    feature = "repository: SHA-256"
	repoShallow   feature = "repository: shallow clone"
	repoPartial   feature = "repository: partial clone"
	repoBare      feature = "repository: bare with --work-tree"
	repoLinked    feature = "repository: linked worktree"
	repoSymlink   feature = "repository: through a symlink"
	repoDirectory feature = "repository: from a subdirectory"
	repoSparse    feature = "repository: sparse checkout"
	repoSplit     feature = "repository: split index"
	repoFsmonitor feature = "repository: fsmonitor"
	repoSubmodule feature = "repository: with a submodule"
	repoEmpty     feature = "repository: empty remote"
	repoDetached  feature = "repository: detached HEAD"
	repoTopic     feature = "repository: topic branch"
	repoNewBranch feature = "repository: a target that does not exist"
	repoApart     feature = "repository: remote without --atomic"
	repoFirst     feature = "repository: first landing under a lease"
	repoStash     feature = "repository: a stash"
	repoBranches  feature = "repository: branches of its own"
	heldWay       feature = "under a lease that the session brought"

	hookSilent     feature = "hook: passes"
	hookChanges    feature = "hook: changes the content"
	hookFails      feature = "hook: fails"
	hookMessage    feature = "hook: changes the message"
	hookSkipped    feature = "hook: --no-verify"
	signing        feature = "signed commits"
	guardSubmodule feature = "guard: an unpushed commit of a submodule"
	guardFiles     feature = "guard: more files than land.maxFiles"
	guardPaths     feature = "guard: outside of land.paths"
	guardMerge     feature = "guard: a merge in the stack"
	guardRename    feature = "guard: half of a renaming"
	guardAllowed   feature = "guard: allowed"
	expectHead     feature = "guard: --expect-head"
	expectBase     feature = "guard: --expect-base"

	othersBefore    feature = "others: had pushed before"
	othersMeanwhile feature = "others: push while it lands"
	othersLand      feature = "others: land while it lands"
	othersMerge     feature = "others: in the same file, elsewhere"
	othersConflict  feature = "others: in conflict"
	othersSame      feature = "others: the same change"
	othersInTheWay  feature = "others: in a file that is dirty here"

	endCtrlC     feature = "end: Ctrl-C"
	endKill      feature = "end: kill -9"
	endKillGroup feature = "end: kill -9 of the process group"
	endAtCall    feature = "end: at a git process"
	endResumed   feature = "end: git land resume"
	endAgain     feature = "end: git land again"
)

// features are all of them.
var features = []feature{
	addition, edition, deletion, renaming, caseRenaming, modeChange, linking, dirForFile, fileForDir, submoduleMove,
	nameSpace, nameNewline, nameBytes, nameSpecial,
	filterCRLF, filterRun, filterNew,
	stagedPart, stagedOther, stagedBack, stagedGone, uncached, intentToAdd, forcedIgnore, ignoredFile, untracked,
	scopePath, scopeDirectory, scopeWildcard, scopeMagic, dirtyInScope, dirtyOutside,
	wayPaths, wayStaged, wayCommits, waySquash, wayMerge, wayForward, wayHead, wayPathsBeside, wayStagedBeside, wayTwice,
	hookSilent, hookChanges, hookFails, hookMessage, hookSkipped, signing,
	guardSubmodule, guardFiles, guardPaths, guardMerge, guardRename, guardAllowed, expectHead, expectBase,
	repoSHA256, repoShallow, repoPartial, repoBare, repoLinked, repoSymlink, repoDirectory, repoSparse, repoSplit, repoFsmonitor,
	repoSubmodule, repoEmpty, repoDetached, repoTopic, repoNewBranch, repoApart, repoFirst, repoStash, repoBranches, heldWay,
	othersBefore, othersMeanwhile, othersLand, othersMerge, othersConflict, othersSame, othersInTheWay,
	endCtrlC, endKill, endKillGroup, endAtCall, endResumed, endAgain,
}

// A tally counts what was drawn, and how it ended.
type tally struct {
	mu    sync.Mutex
	drawn map[feature]int
	ends  map[string]int
}

func newTally() *tally { return &tally{drawn: map[feature]int{}, ends: map[string]int{}} }

func (t *tally) add(drawn map[feature]bool, ends []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range drawn {
		t.drawn[f]++
	}
	for _, e := range ends {
		t.ends[e]++
	}
}

// missing lists what was never drawn.
func (t *tally) missing() []feature {
	return slices.DeleteFunc(slices.Clone(features), func(f feature) bool { return t.drawn[f] > 0 })
}

func (t *tally) String() string {
	var b strings.Builder
	for _, f := range features {
		fmt.Fprintf(&b, "%6d %s\n", t.drawn[f], f)
	}
	for _, e := range slices.Sorted(maps.Keys(t.ends)) {
		fmt.Fprintf(&b, "%6d ended: %s\n", t.ends[e], e)
	}
	return b.String()
}
