//! The fewest members that carry given needs, but for a share of the bins.
//!
//! Given how many members each bin needs, a plan says how many are on in each. It costs the time that members are
//! awake: a bin's length for each that is on, and the lead for each that wakes up, which it spends awake before
//! its bin. A bin is *overloaded* if fewer are on than it needs. Wanted is the cheapest plan that
//! overloads a given number of bins at most. All members are on before the first bin.
//!
//! A plan that wakes a member after a gap shorter than the lead costs more than one that leaves it on, so that no
//! cheapest plan asks for what cannot be done.
//!
//! [`Problem::solve`] finds it exactly, bin by bin (dynamic programming over the number of members that are on
//! and of bins overloaded so far), as long as the table that this takes has at most [`LARGEST`] entries: bins
//! times members times overloaded bins, of which two minutes with 0.1 % and eight members have 115 million.
//!
//! For what is longer [`Problem::solve_by_price`] gives an overloaded bin a price (a Lagrange multiplier) and
//! finds the cheapest plan under it. No plan that overloads as few bins is cheaper than one that is
//! cheapest under some price (H. Everett, "Generalized Lagrange Multiplier Method", Operations Research 11(3),
//! 1963), but there may be none for the whole allowance: some of it may be left unused.

/// What a plan is made for. Times are in any one unit.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// How many members each bin needs, 1 to `members`.
    pub needs: &'a [u32],
    /// How many there are, 64 at most.
    pub members: u32,
    /// The length of a bin.
    pub bin: u64,
    /// The time awake that waking up takes.
    pub lead: u64,
}

/// A plan and what it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How many members are on in each bin.
    pub on: Vec<u32>,
    /// Time awake of all members but that before the first bin.
    pub cost: u64,
    /// Bins with fewer members than they need.
    pub overloaded: u64,
}

/// The largest table that is made, in entries of an octet.
pub const LARGEST: u64 = 1 << 27;

/// Cost so far, and overloaded bins for ties.
type Total = (u128, u64);

impl Problem<'_> {
    /// The cheapest plan that overloads `most` bins or fewer; exact unless the table would be larger than
    /// [`LARGEST`].
    #[must_use]
    pub fn solve(&self, most: u64) -> Plan {
        let entries = (self.needs.len() as u64)
            .saturating_mul(u64::from(self.members))
            .saturating_mul(most.saturating_add(1));
        match usize::try_from(most) {
            Ok(most) if entries <= LARGEST => self.solve_exactly(most),
            _ => self.solve_by_price(most),
        }
    }

    /// With a table of bins, overloaded bins so far and members that are on.
    fn solve_exactly(&self, most: usize) -> Plan {
        const NOWHERE: u64 = u64::MAX;
        let count = self.members as usize;
        let row = count * (most + 1);
        let mut best = vec![NOWHERE; row];
        best[count - 1] = 0;
        let mut next = vec![NOWHERE; row];
        // Of each entry: members that are on in the bin before, less one.
        let mut before = vec![0_u8; row * self.needs.len()];
        for (k, &need) in self.needs.iter().enumerate() {
            next.fill(NOWHERE);
            let back = &mut before[k * row..(k + 1) * row];
            for used in 0..=most {
                let best = &best[used * count..][..count];
                let (mut from, mut total) = (0, NOWHERE);
                // From fewer, each that wakes up has its lead; from more, members go for nothing.
                let mut reached = [(NOWHERE, 0); 64];
                for on in 0..count {
                    total = total.saturating_add(self.lead);
                    if best[on] < total {
                        (from, total) = (on, best[on]);
                    }
                    reached[on] = (total, from);
                }
                let (mut from, mut total) = (0, NOWHERE);
                for on in (0..count).rev() {
                    if best[on] < total {
                        (from, total) = (on, best[on]);
                    }
                    if total < reached[on].0 {
                        reached[on] = (total, from);
                    }
                }
                for (on, (total, from)) in reached[..count].iter().enumerate() {
                    let used = used + usize::from(on + 1 < need as usize);
                    if *total == NOWHERE || used > most {
                        continue;
                    }
                    let place = used * count + on;
                    next[place] = total + (on as u64 + 1) * self.bin;
                    back[place] = narrow(*from);
                }
            }
            std::mem::swap(&mut best, &mut next);
        }
        let mut place = (0..row).min_by_key(|place| best[*place]).unwrap_or(0);
        let mut on = vec![1; self.needs.len()];
        for k in (0..self.needs.len()).rev() {
            let (used, state) = (place / count, place % count);
            on[k] = u32::try_from(state).expect("64 members at most") + 1;
            let used = used - usize::from(on[k] < self.needs[k]);
            place = used * count + usize::from(before[k * row + place]);
        }
        self.plan(on)
    }

    /// The cheapest plan for a price that overloads `most` bins or fewer.
    #[must_use]
    pub fn solve_by_price(&self, most: u64) -> Plan {
        // Above this no run of overloaded bins pays.
        let enough = u64::from(self.members) * (self.bin + self.lead) + 1;
        let safe = self.priced(enough);
        if most == 0 {
            return safe;
        }
        let free = self.priced(0);
        if free.overloaded <= most {
            return free;
        }
        let (mut low, mut high, mut best) = (0, enough, safe);
        while high - low > 1 {
            let price = low.midpoint(high);
            let plan = self.priced(price);
            if plan.overloaded <= most {
                (high, best) = (price, plan);
            } else {
                low = price;
            }
        }
        best
    }

    /// The cheapest plan if bins may be overloaded for this price.
    fn priced(&self, price: u64) -> Plan {
        let count = self.members as usize;
        let nowhere: Total = (u128::MAX, u64::MAX);
        let mut best = vec![nowhere; count];
        if let Some(all) = best.last_mut() {
            *all = (0, 0);
        }
        // By bin and members that are on in it, less one: those in the bin before.
        let mut before: Vec<u8> = vec![0; count * self.needs.len()];
        for (k, &need) in self.needs.iter().enumerate() {
            let row = &mut before[k * count..(k + 1) * count];
            // From more, members go for nothing; from fewer, each has its lead.
            let (mut from, mut total) = (count - 1, nowhere);
            let mut next = vec![nowhere; count];
            for on in (0..count).rev() {
                if best[on] < total {
                    (from, total) = (on, best[on]);
                }
                (next[on], row[on]) = (total, narrow(from));
            }
            let (mut from, mut total) = (0, nowhere);
            for on in 0..count {
                if total != nowhere {
                    total.0 += u128::from(self.lead);
                }
                if total < next[on] {
                    (next[on], row[on]) = (total, narrow(from));
                }
                if best[on] < total {
                    (from, total) = (on, best[on]);
                }
            }
            for (on, total) in (1_u32..).zip(&mut next) {
                total.0 += u128::from(on) * u128::from(self.bin);
                if on < need {
                    total.0 += u128::from(price);
                    total.1 += 1;
                }
            }
            best = next;
        }
        let mut on = vec![1; self.needs.len()];
        let last = (0..count).min_by_key(|on| best[*on]).unwrap_or(0);
        let mut state = last;
        for k in (0..self.needs.len()).rev() {
            on[k] = u32::try_from(state).expect("64 members at most") + 1;
            state = usize::from(before[k * count + state]);
        }
        self.plan(on)
    }

    /// What a plan comes to.
    #[must_use]
    pub fn plan(&self, on: Vec<u32>) -> Plan {
        let mut previous = self.members;
        let (mut cost, mut overloaded) = (0, 0);
        for (&now, &need) in on.iter().zip(self.needs) {
            let woken = now.saturating_sub(previous);
            cost += u64::from(now) * self.bin + u64::from(woken) * self.lead;
            overloaded += u64::from(now < need);
            previous = now;
        }
        Plan {
            on,
            cost,
            overloaded,
        }
    }
}

fn narrow(members: usize) -> u8 {
    u8::try_from(members).expect("64 members at most")
}
