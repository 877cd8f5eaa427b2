// Package values reads what people write after flags, in the forms of the docker CLI: ports,
// mounts, references to secrets and configs, networks, amounts and labels. Its functions are
// pure. An error says what is wrong with the value; which flag it is, the caller adds.
package values

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Pair is a key with a value, as in a label.
type Pair struct{ Key, Value string }

// ParsePair reads KEY or KEY=VALUE.
func ParsePair(s string) (Pair, error) {
	key, value, _ := strings.Cut(s, "=")
	if key == "" {
		return Pair{}, fmt.Errorf("%q is neither KEY nor KEY=VALUE", s)
	}
	return Pair{key, value}, nil
}

// EditLabels returns labels without some and with others, which may replace some. It changes
// the map that it is given, if there is one.
func EditLabels(labels map[string]string, remove []string, set map[string]string) map[string]string {
	for _, k := range remove {
		delete(labels, k)
	}
	if labels == nil {
		return maps.Clone(set)
	}
	maps.Copy(labels, set)
	return labels
}

// ParseLabels reads KEY or KEY=VALUE entries; a later one wins.
func ParseLabels(list []string) (map[string]string, error) {
	var labels map[string]string
	for _, s := range list {
		p, err := ParsePair(s)
		if err != nil {
			return nil, err
		}
		if labels == nil {
			labels = make(map[string]string)
		}
		labels[p.Key] = p.Value
	}
	return labels, nil
}

// ParseEnv reads KEY=VALUE entries. KEY alone takes its value from lookup; if it has none
// there, it stays as it is, and removes what the image has set.
func ParseEnv(list []string, lookup func(string) (string, bool)) ([]string, error) {
	var env []string
	for _, s := range list {
		key, _, hasValue := strings.Cut(s, "=")
		if key == "" {
			return nil, fmt.Errorf("%q is neither KEY nor KEY=VALUE", s)
		}
		if value, ok := lookup(key); ok && !hasValue {
			s = key + "=" + value
		}
		env = append(env, s)
	}
	return env, nil
}

// nanosPerCPU is the unit of the API.
const nanosPerCPU = 1_000_000_000

// ParseCPUs reads a number of processors, such as 0.5, and returns billionths.
func ParseCPUs(s string) (int64, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok || strings.ContainsAny(s, "/eExX_") || r.Sign() < 0 {
		return 0, fmt.Errorf("%q is not a number of processors", s)
	}
	r.Mul(r, big.NewRat(nanosPerCPU, 1))
	if !r.IsInt() {
		return 0, fmt.Errorf("%q is finer than a billionth of a processor", s)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return r.Num().Int64(), nil
}

// ParseBytes reads an amount of memory: a number, and one of b, k, m, g, t, also as kb or kib,
// in powers of 1024.
func ParseBytes(s string) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(s))
	number := strings.TrimRightFunc(lower, unicode.IsLetter)
	unit := strings.TrimSuffix(strings.TrimSuffix(lower[len(number):], "b"), "i")
	const units = "kmgt"
	shift := 0
	if unit != "" {
		at := strings.Index(units, unit)
		if len(unit) != 1 || at < 0 {
			return 0, fmt.Errorf("%q is not an amount such as 512m or 1g", s)
		}
		shift = 10 * (at + 1)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || f < 0 || math.IsNaN(f) || strings.ContainsAny(number, "exp_") {
		return 0, fmt.Errorf("%q is not an amount such as 512m or 1g", s)
	}
	f *= math.Ldexp(1, shift)
	if f >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return int64(f), nil
}

// ParseChoice checks that s is one of the choices, and returns its number.
func ParseChoice(s string, choices ...string) (int, error) {
	for i, c := range choices {
		if s == c {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s", s, strings.Join(choices, ", "))
}

// fields reads the long form of a value: KEY=VALUE,… with CSV's quotes. Keys are lower-cased.
// Those that are switches may stand alone, as in "readonly".
func fields(s string, switches ...string) ([]Pair, error) {
	r := csv.NewReader(strings.NewReader(s))
	parts, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%q is not KEY=VALUE,…: %w", s, err)
	}
	var all []Pair
	for _, part := range parts {
		p, err := ParsePair(part)
		if err != nil {
			return nil, err
		}
		p.Key = strings.ToLower(p.Key)
		if !strings.Contains(part, "=") {
			if !slices.Contains(switches, p.Key) {
				return nil, fmt.Errorf("%q: %q is not KEY=VALUE", s, part)
			}
			p.Value = "true"
		}
		all = append(all, p)
	}
	return all, nil
}

// isLong tells whether a value is in the long form and not a bare name.
func isLong(s string) bool { return strings.ContainsAny(s, "=,") }

// parseBool reads a switch.
func parseBool(p Pair) (bool, error) {
	b, err := strconv.ParseBool(p.Value)
	if err != nil {
		return false, fmt.Errorf("%s=%s: want true or false", p.Key, p.Value)
	}
	return b, nil
}

// parseOctal reads permission bits as chmod takes them.
func parseOctal(p Pair) (uint32, error) {
	const octal, bits = 8, 32
	n, err := strconv.ParseUint(p.Value, octal, bits)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: want permissions such as 0444", p.Key, p.Value)
	}
	return uint32(n), nil
}

// SplitWords splits a command line into words as a shell would: quotes and backslashes keep
// characters together. Nothing is expanded.
func SplitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, escaped, quote := false, false, rune(0)
	for _, r := range s {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\\\"$`\n", r) {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			inWord, quote = true, r
		case unicode.IsSpace(r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("%q ends within a quotation", s)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
