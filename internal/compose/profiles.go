package compose

import (
	"fmt"
	"slices"
	"strings"
)

// allProfiles stands for every profile, as in Compose.
const allProfiles = "*"

// selectProfiles takes services out of the merged files that have profiles, none of which is
// asked for. They are left out as if they were not there: nothing of them is looked at.
func selectProfiles(model map[string]any, wanted []string, said *report) {
	services, ok := model["services"].(map[string]any)
	if !ok {
		return
	}
	known := map[string]bool{allProfiles: true}
	for _, key := range sortedKeys(services) {
		service, ok := services[key].(map[string]any)
		if !ok {
			continue
		}
		profiles := texts(service["profiles"])
		delete(service, "profiles")
		on := len(profiles) == 0 || slices.Contains(wanted, allProfiles)
		for _, p := range profiles {
			known[p] = true
			on = on || slices.Contains(wanted, p)
		}
		if !on {
			delete(services, key)
			said.say(fmt.Sprintf("services.%s: left out: it is only for the profiles %s", key, strings.Join(profiles, ", ")))
		}
	}
	for _, p := range wanted {
		if !known[p] {
			said.say(fmt.Sprintf("profile %s: no service has it", p))
		}
	}
}

// texts are the strings of a list.
func texts(list any) []string {
	var found []string
	all, _ := list.([]any)
	for _, element := range all {
		if s, ok := element.(string); ok {
			found = append(found, s)
		}
	}
	return found
}
