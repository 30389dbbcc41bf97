package cost

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/text/currency"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/internal/platform/config"
)

const (
	// MaxPriceList is the longest price list, in bytes.
	MaxPriceList = 256 << 10
	// maxPrice is the highest price of anything for an hour, and maxPlaces how many digits a price has behind the point at most.
	maxPrice, maxPlaces = 1_000_000_000, 6
	// maxNode is the most that a node has of anything.
	maxNode = 1_000_000
)

// priceList is a price list as it is written.
type priceList struct {
	Currency string            `json:"currency"`
	Prices   []writtenValidity `json:"prices"`
}

// writtenValidity is what things cost from a day on.
type writtenValidity struct {
	ValidFrom     string               `json:"validFrom"`
	CPUCoreHour   string               `json:"cpuCoreHour"`
	MemoryGiBHour string               `json:"memoryGiBHour"`
	Accelerators  []writtenAccelerator `json:"accelerators"`
	Nodes         []writtenNode        `json:"nodes"`
}

// writtenAccelerator is what a device costs.
type writtenAccelerator struct {
	Resource        string `json:"resource"`
	Model           string `json:"model"`
	Hourly          string `json:"hourly"`
	SurplusDiscount string `json:"surplusDiscount"`
}

// writtenNode is what a whole node costs.
type writtenNode struct {
	Resource        string `json:"resource"`
	Model           string `json:"model"`
	Devices         int32  `json:"devices"`
	CPUCores        int32  `json:"cpuCores"`
	MemoryGiB       int32  `json:"memoryGiB"`
	Hourly          string `json:"hourly"`
	SurplusDiscount string `json:"surplusDiscount"`
}

// ParsePrices reads a price list, in YAML. The error has one sentence a line, for all that is wrong: field, value, the rule that
// it breaks, and what to write. Fields:
//
//	currency                 ISO 4217
//	prices[]
//	  validFrom              day, as 2026-01-01; it holds from the midnight of that day in the report's zone until the next begins
//	  cpuCoreHour            what a core costs for an hour, and memoryGiBHour a GiB; both may be missing where there are nodes
//	  accelerators[]
//	    resource, model      name of the resource, and the model for which this is the price; without one, for all others
//	    hourly               what a device costs for an hour
//	    surplusDiscount      share of it that workers beyond the core do not pay, from 0 to 1; 0 if it is missing
//	  nodes[]                what a whole node costs, for those who know no more
//	    resource, model      of its accelerators, as above
//	    devices, cpuCores, memoryGiB   what it has; whole numbers
//	    hourly               95 % of it are for devices, 3 % for cores, and 2 % for memory, for all pods that have such devices
//	    surplusDiscount      as above
//
// Prices are decimals in quotes, from 0 to a billion, with at most six digits behind the point.
func ParsePrices(content []byte) (*Prices, error) {
	if len(content) > MaxPriceList {
		return nil, fmt.Errorf("the price list has %d bytes: it may have %d; remove prices of years that no report is about",
			len(content), MaxPriceList)
	}
	var list priceList
	if err := config.Decode(content, "currency and prices", &list); err != nil {
		return nil, err
	}
	var f faults
	p := &Prices{Currency: list.Currency}
	if _, err := currency.ParseISO(list.Currency); err != nil || !threeCapitals.MatchString(list.Currency) {
		f.addValue("currency", list.Currency, "it must be a currency by its three letters of ISO 4217, as CNY or EUR")
	}
	if len(list.Prices) == 0 {
		f.add("prices", "lists nothing: say from when on what costs how much")
	}
	for i := range list.Prices {
		p.validities = append(p.validities, f.readValidity(fmt.Sprintf("prices[%d]", i), &list.Prices[i], list.Prices[:i]))
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	slices.SortFunc(p.validities, func(a, b validity) int { return a.from.Compare(b.from) })
	return p, nil
}

var (
	threeCapitals = regexp.MustCompile(`^[A-Z]{3}$`)
	aDecimal      = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
)

// readValidity reads what things cost from a day on, behind those before it.
func (f *faults) readValidity(path string, w *writtenValidity, before []writtenValidity) validity {
	v := validity{devices: map[device]price{}}
	from, err := time.Parse(time.DateOnly, w.ValidFrom)
	if err != nil {
		f.addValue(path+".validFrom", w.ValidFrom, "it must be a day, as 2026-01-01")
	}
	v.from = from
	if i := slices.IndexFunc(before, func(o writtenValidity) bool { return o.ValidFrom == w.ValidFrom }); err == nil && i >= 0 {
		f.addValue(path+".validFrom", w.ValidFrom, fmt.Sprintf("prices[%d] holds from that day on too: leave one, or change its "+
			"day", i))
	}
	for _, field := range []struct {
		name, value string
		into        **decimal.Decimal
	}{{".cpuCoreHour", w.CPUCoreHour, &v.core}, {".memoryGiBHour", w.MemoryGiBHour, &v.gib}} {
		switch {
		case field.value != "":
			hourly := f.readPrice(path+field.name, field.value)
			*field.into = &hourly
		case len(w.Nodes) == 0:
			f.add(path+field.name, `is missing: say what it costs, "0" for nothing, or under nodes what whole nodes cost`)
		}
	}
	known := map[device]string{}
	for i := range w.Accelerators {
		a, at := &w.Accelerators[i], fmt.Sprintf("%s.accelerators[%d]", path, i)
		v.devices[f.readDevice(at, a.Resource, a.Model, known)] = f.readAccelerator(at, a.Hourly, a.SurplusDiscount)
	}
	for i := range w.Nodes {
		n, at := &w.Nodes[i], fmt.Sprintf("%s.nodes[%d]", path, i)
		v.devices[f.readDevice(at, n.Resource, n.Model, known)] = f.readNode(at, n)
	}
	return v
}

// readDevice reads what an accelerator or a node is of, which none of those that are known may be.
func (f *faults) readDevice(path, resource, model string, known map[device]string) device {
	d := device{resource, model}
	name := corev1.ResourceName(resource)
	if len(validation.IsQualifiedName(resource)) > 0 || name == corev1.ResourceCPU || name == corev1.ResourceMemory {
		f.addValue(path+".resource", resource, "it must name the resource of an accelerator as nodes do, for example nvidia.com/gpu")
		return d
	}
	if other, twice := known[d]; twice {
		f.addValue(path+".resource", resource, fmt.Sprintf("%s has the price of this resource and model %.60q already: leave one",
			other, model))
	}
	known[d] = path
	return d
}

// readAccelerator reads the price of a device.
func (f *faults) readAccelerator(path, hourly, discount string) price {
	return price{hourly: f.readPrice(path+".hourly", hourly), kept: f.readDiscount(path+".surplusDiscount", discount)}
}

// The shares of a node's price that devices, cores and memory have.
var ofDevices, ofCores, ofMemory = decimal.New(95, -2), decimal.New(3, -2), decimal.New(2, -2)

// readNode derives from the price of a node those of what it has.
func (f *faults) readNode(path string, n *writtenNode) price {
	p := f.readAccelerator(path, n.Hourly, n.SurplusDiscount)
	share := func(name string, of decimal.Decimal, amount int32) decimal.Decimal {
		if amount < 1 || amount > maxNode {
			f.add(path+name, fmt.Sprintf("is %d: it must be from 1 to %d, what the node has", amount, maxNode))
			return decimal.Zero
		}
		return p.hourly.Mul(of).DivRound(decimal.NewFromInt32(amount), places)
	}
	devices, core, gib := share(".devices", ofDevices, n.Devices), share(".cpuCores", ofCores, n.CPUCores),
		share(".memoryGiB", ofMemory, n.MemoryGiB)
	return price{hourly: devices, kept: p.kept, core: &core, gib: &gib}
}

// readDiscount reads a discount, and returns the share that is left to pay.
func (f *faults) readDiscount(path, text string) decimal.Decimal {
	one := decimal.NewFromInt(1)
	if text == "" {
		return one
	}
	discount := f.readDecimal(path, text)
	if discount.IsNegative() || discount.GreaterThan(one) {
		f.addValue(path, text, "a discount is a share from 0 to 1")
	}
	return one.Sub(discount)
}

func (f *faults) readPrice(path, text string) decimal.Decimal {
	if text == "" {
		f.add(path, `is missing: say what an hour costs, "0" for nothing`)
		return decimal.Zero
	}
	d := f.readDecimal(path, text)
	switch {
	case d.IsNegative():
		f.addValue(path, text, "it is negative: a price is 0 or more")
	case d.GreaterThan(decimal.NewFromInt(maxPrice)):
		f.addValue(path, text, fmt.Sprintf("a price is %d at most: see whether the currency and the point are right", maxPrice))
	}
	return d
}

func (f *faults) readDecimal(path, text string) decimal.Decimal {
	d := decimal.Zero
	if aDecimal.MatchString(text) {
		d, _ = decimal.NewFromString(text) // of such a text it has no error
	} else {
		f.addValue(path, text, `it must be a decimal, as "8.50"`)
	}
	if -d.Exponent() > maxPlaces {
		f.addValue(path, text, fmt.Sprintf("it may have %d digits behind the point", maxPlaces))
	}
	return d
}

// faults are what is wrong with a price list, a sentence each.
type faults []error

func (f *faults) add(path, says string) { *f = append(*f, fmt.Errorf("%s %s", path, says)) }

// addValue adds a value that breaks a rule.
func (f *faults) addValue(path, value, rule string) {
	f.add(path, fmt.Sprintf("is %.60q: %s", value, rule))
}

func (f *faults) err() error { return errors.Join(*f...) }
