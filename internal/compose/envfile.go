package compose

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
)

// readEnvFiles adds the variables of env files to those of the environment, which win, as in
// Compose. Of two files the later one wins.
func (o Options) readEnvFiles(environment types.Mapping, dir string) error {
	found := map[string]string{}
	for _, name := range o.EnvFiles {
		content, err := readLimited(under(dir, name), maxFile)
		if err != nil {
			return fmt.Errorf("env file: %w", err)
		}
		err = dotenv.ParseWithFormat(bytes.NewReader(content), name, found, func(key string) (string, bool) {
			value, ok := environment[key]
			if !ok {
				value, ok = found[key]
			}
			return value, ok
		}, dotenv.DotEnv)
		if err != nil {
			return fmt.Errorf("env file: %w", hideLines(err))
		}
	}
	for key, value := range found {
		if _, ok := environment[key]; !ok {
			environment[key] = value
		}
	}
	return nil
}

var (
	envLine     = regexp.MustCompile(`^line \d+: `)
	envFileText = regexp.MustCompile(`(?s)failed to read (.+?): (.*)$`)
)

// envFault words what is wrong with an env file. What compose-go says of it shows the line,
// which may well be a password.
func envFault(text string) string {
	line := envLine.FindString(text)
	switch text = text[len(line):]; {
	case strings.HasPrefix(text, "unexpected character"), strings.HasPrefix(text, "key cannot"):
		return line + "it is not KEY=VALUE"
	case strings.HasPrefix(text, "unterminated quoted value"):
		return line + "a quote is not closed"
	}
	return line + "it cannot be read as KEY=VALUE, or a $ in it cannot"
}

// hideLines takes the lines of an env file or a label file out of an error about it.
func hideLines(err error) error {
	if err == nil {
		return nil
	}
	m := envFileText.FindStringSubmatchIndex(err.Error())
	if m == nil {
		return err
	}
	text := err.Error()
	return &reworded{msg: text[:m[0]] + text[m[2]:m[3]] + ": " + envFault(text[m[4]:m[5]]), err: err}
}
