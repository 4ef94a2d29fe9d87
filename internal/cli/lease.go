package cli

func leaseTool() *tool {
	show := showCommand()
	return &tool{
		name: "git lease",
		root: &command{
			synopsis: "[show [NAME...]]\nCOMMAND [OPTION...] [NAME]",
			about: `
A lease keeps sessions from doing at the same time what must not overlap, such
as preparing a release. It lives in the repository that it protects. Without a
command, git lease shows who holds which.`,
			examples: `
git lease                                        who holds what
git lease run -m "release 1.2" -- ./release.sh   hold it while a command runs
eval "$(git lease acquire)" && ./release.sh      hold it in this shell, then:
git lease release`,
			exits: []int{3, 6, 8, 9},
			flags: show.flags,
			run:   show.run,
		},
		commands: []*command{
			acquireCommand(), releaseCommand(), runCommand(), show, leaseLogCommand(), recoverCommand(), breakCommand(), adoptCommand(),
			freezeCommand(), thawCommand(), hookCommand(), doctorCommand(),
		},
	}
}
