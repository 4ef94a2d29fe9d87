# shellcheck shell=sh
# Sourced by the scripts beside it, from the root of the checkout: says what to
# install when Go or git is missing or too old.

# at_least HAVE WANT: whether one dotted version is not below another.
at_least() {
	awk -v have="$1" -v want="$2" 'BEGIN {
		split(have, h, /[^0-9]+/)
		n = split(want, w, /[^0-9]+/)
		for (i = 1; i <= n; i++)
			if (h[i] + 0 != w[i] + 0)
				exit h[i] + 0 < w[i] + 0
	}'
}

# refuse SENTENCE: a need that is not met ends the script.
refuse() {
	echo "${0##*/}: $1" >&2
	exit 1
}

need_go() {
	want=$(awk '$1 == "go" { print $2 }' go.mod)
	command -v go >/dev/null ||
		refuse "Go $want or newer is needed and no go is in PATH: install it from https://go.dev/dl/"
	# Go 1.21 and newer fetch the version that go.mod asks for by themselves,
	# unless GOTOOLCHAIN or the network forbids it.
	have=$(go env GOVERSION) || have=older
	at_least "${have#go}" "$want" ||
		refuse "Go $want or newer is needed and this is $have: install it from https://go.dev/dl/"
}

need_git() {
	command -v git >/dev/null ||
		refuse "git 2.38 or newer is needed and none is in PATH: install the package git, or see https://git-scm.com/downloads"
	have=$(git version | awk '{ print $3 }')
	at_least "$have" 2.38 ||
		refuse "git 2.38 or newer is needed and this is $have: install a newer one, see https://git-scm.com/downloads"
}

# build DIRECTORY: puts git-land and git-lease there.
build() {
	# No version-control stamp: a checkout that belongs to another user, or an
	# unpacked archive, builds as well. Without the documentation generator of
	# the command-line library, whose tables would be set up at every start.
	go build -buildvcs=false -tags urfave_cli_no_docs -o "$1/" ./cmd/git-land ./cmd/git-lease ||
		go build -buildvcs=false -tags urfave_cli_no_docs -o "$1/" ./cmd/git-land ./cmd/git-lease # a module download may fail once
}
