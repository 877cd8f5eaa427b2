package compose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/compose-spec/compose-go/v2/format"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

// locate puts a place before an error of compose-go that names none. For a port or a volume in
// short form it looks for the entry that gives the same error.
func locate(err error, files []types.ConfigFile, get template.Mapping) error {
	if err == nil {
		return nil
	}
	quiet := &substitution{unset: func(string) {}}
	for _, file := range files {
		var raw struct {
			Services map[string]struct{ Ports, Volumes any }
		}
		if yaml.Unmarshal(file.Content, &raw) != nil {
			continue
		}
		find := func(path string, list any, parse func(string) error) error {
			entries, _ := list.([]any)
			for i, entry := range entries {
				text, substituted := quiet.substitute(fmt.Sprint(entry), get)
				if e := parse(text); substituted == nil && e != nil && e.Error() == err.Error() {
					return fmt.Errorf("%s[%d]: %w", path, i, err)
				}
			}
			return nil
		}
		for _, key := range sortedKeys(raw.Services) {
			service, path := raw.Services[key], "services."+key
			if found := find(path+".ports", service.Ports, parsePort); found != nil {
				return found
			}
			if found := find(path+".volumes", service.Volumes, parseVolume); found != nil {
				return found
			}
		}
	}
	return located(err, files)
}

// located puts the files' names before an error that names neither one of them nor a key.
func located(err error, files []types.ConfigFile) error {
	text := err.Error()
	for section := range carriedKeys() {
		if strings.Contains(text, section+".") {
			return err
		}
	}
	var names []string
	for _, f := range files {
		if strings.Contains(text, f.Filename+": ") {
			return err
		}
		names = append(names, f.Filename)
	}
	return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
}

func parsePort(text string) error {
	_, err := types.ParsePortConfig(text)
	return err
}

func parseVolume(text string) error {
	_, err := format.ParseVolume(text)
	return err
}

// decodedKey is how an error of decoding names a service's key: 'services[web].tty'.
var decodedKey = regexp.MustCompile(`'(\w+)\[([^\]]+)\]\.([^']+)'`)

// tidy gives an error of compose-go one line and the form of ours; its chain stays.
func tidy(err error) error {
	if err == nil {
		return nil
	}
	var parts []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line == "" || strings.HasPrefix(line, "decoding failed") {
			continue
		}
		if at, unknown := strings.CutSuffix(line, " false schema"); unknown {
			line = at + ": Compose has no such key"
		}
		parts = append(parts, decodedKey.ReplaceAllString(line, "$1.$2.$3:"))
	}
	return &reworded{msg: strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": "), err: err}
}

// reworded is an error with another text.
type reworded struct {
	msg string
	err error
}

func (e *reworded) Error() string { return e.msg }
func (e *reworded) Unwrap() error { return e.err }
