package stack

import (
	"strings"

	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// printDeployed prints what a deployment did, or would do.
func printDeployed(env *command.Env, stack string, r *holdfast.DeployResponse, dryRun bool) error {
	if dryRun {
		return printDryRun(env, stack, r)
	}
	if p := env.Printer(); p.Format == cli.JSON {
		return p.JSON(r)
	}
	if err := printChanges(env, r.Changes); err != nil || !env.Talks() {
		return err
	}
	// A manager that keeps no releases tells of none.
	if r.Release != 0 {
		if err := env.Printf("release %d", r.Release); err != nil {
			return err
		}
	}
	return env.Printf("revision %d", r.Revision)
}

// printChanges prints what was done: a line for each object that was changed.
func printChanges(env *command.Env, changes []*holdfast.StackChange) error {
	changed := 0
	for _, ch := range changes {
		if ch.Action == holdfast.StackChange_UNCHANGED {
			continue
		}
		changed++
		if err := printChange(env, ch); err != nil {
			return err
		}
	}
	if changed == 0 {
		env.Notef("nothing to change")
	}
	return nil
}

func printChange(env *command.Env, ch *holdfast.StackChange) error {
	switch env.Printer().Format {
	case cli.ID:
		return env.Printf("%s", cli.Clean(ch.ID))
	case cli.Name:
		return env.Printf("%s", cli.Clean(ch.Name))
	}
	kind := strings.ToLower(strings.TrimPrefix(ch.Kind.String(), "KIND_"))
	return env.Printf("%s %s %s  %s", kind, cli.Clean(ch.Name), strings.ToLower(ch.Action.String()), cli.Clean(ch.ID))
}

// dryRun is what -o json prints of one.
type dryRun struct {
	Stack    string               `json:"stack"`
	Release  uint64               `json:"release,string"`
	Revision uint64               `json:"revision,string"`
	Objects  []command.ObjectDiff `json:"objects"`
}

// printDryRun prints what a deployment would do, as a comparison is printed.
func printDryRun(env *command.Env, stack string, r *holdfast.DeployResponse) error {
	var objects []*holdfast.ObjectDiff
	for _, ch := range r.Changes {
		d := &holdfast.ObjectDiff{Kind: ch.Kind, ID: ch.ID, Name: ch.Name, Fields: ch.Fields}
		switch ch.Action {
		case holdfast.StackChange_UNCHANGED:
			continue
		case holdfast.StackChange_CREATED:
			d.Action = holdfast.Action_ACTION_CREATE
		case holdfast.StackChange_UPDATED:
			d.Action = holdfast.Action_ACTION_UPDATE
		case holdfast.StackChange_REMOVED:
			d.Action = holdfast.Action_ACTION_REMOVE
		}
		objects = append(objects, d)
	}
	err := command.PrintObjectDiffs(env, objects, func(all []command.ObjectDiff) any {
		return dryRun{Stack: stack, Release: r.Release, Revision: r.Revision, Objects: all}
	})
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		env.Notef("nothing to change")
	}
	env.Notef("dry run: nothing is written; release %d would be the deployed one", r.Release)
	return nil
}
