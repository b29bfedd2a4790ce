//! The shape of a network: which links a message takes from one node to another.
//!
//! A link carries one way. A node's adapter includes the links to its first switch; they are not here.

/// How the switches of a network are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Shape {
    /// No links that messages share.
    Crossbar,
    /// Two levels of switches: `leaf` nodes on each lower one, which has `up` links to as many upper ones.
    FatTree { leaf: usize, up: usize },
    /// A ring in each direction, with `share` nodes on each switch.
    Torus { sides: [usize; 3], share: usize },
    /// Groups of `routers`, all joined in a group, with `share` nodes on each router, and one link between any two groups.
    Dragonfly { routers: usize, share: usize },
}

impl Shape {
    /// The torus of about equal sides with room for `nodes` nodes.
    pub(in crate::comm) fn torus_of(nodes: usize, share: usize) -> Self {
        let switches = nodes.div_ceil(share).max(1);
        let root = |count: usize, of: f64| (count as f64).powf(1.0 / of).ceil() as usize;
        // The smallest of the boxes whose sides are near the cube's. One with room to begin with: a ring would have no switch too many.
        let longest = root(switches, 3.0).max(1) + 1;
        let mut best = [longest; 3];
        for x in 1..=longest {
            for y in x..=longest {
                let z = switches.div_ceil(x * y).max(y);
                let volume = |sides: &[usize; 3]| (sides.iter().product::<usize>(), sides.iter().sum::<usize>());
                if volume(&[x, y, z]) < volume(&best) && z <= 2 * x.max(1) + 1 {
                    best = [x, y, z];
                }
            }
        }
        let [x, y, z] = best;
        Shape::Torus { sides: [z, y, x], share }
    }

    /// Returns true if there are not too many links to keep a time for each.
    pub(in crate::comm) fn is_small(&self, nodes: usize) -> bool {
        const MOST: u128 = 1 << 26;
        let product = |factors: &[usize]| factors.iter().fold(1_u128, |product, &factor| product.saturating_mul(factor as u128));
        match self {
            Shape::Crossbar => true,
            Shape::FatTree { up, .. } => product(&[nodes, *up]) < MOST,
            Shape::Torus { sides: [x, y, z], share } => product(&[*x, *y, *z, *share]) < MOST,
            Shape::Dragonfly { routers, share } => {
                let groups = 1 + nodes / product(&[*routers, *share]).min(1 << 40) as usize;
                product(&[groups, *routers, *routers]) < MOST && product(&[groups, groups]) < MOST
            }
        }
    }

    /// The number of links for `nodes` nodes.
    pub(super) fn links(&self, nodes: usize) -> usize {
        match self {
            Shape::Crossbar => 0,
            Shape::FatTree { leaf, up } => 2 * nodes.div_ceil(*leaf) * up,
            Shape::Torus { sides, .. } => 6 * sides.iter().product::<usize>(),
            Shape::Dragonfly { routers, share } => {
                let groups = nodes.div_ceil(routers * share);
                groups * routers * routers + groups * groups
            }
        }
    }

    /// The direction of a torus in which a link leads.
    pub(super) fn direction(&self, link: usize) -> usize {
        if matches!(self, Shape::Torus { .. }) { link % 6 / 2 } else { 0 }
    }

    /// The number of nodes that there is room for.
    pub(in crate::comm) fn room(&self) -> usize {
        match self {
            Shape::Torus { sides, share } => share * sides.iter().product::<usize>(),
            // One link from each router to another group.
            _ => usize::MAX,
        }
    }

    /// The links from one node to another. There is one switch more on the way.
    pub(super) fn route(&self, nodes: usize, from: usize, to: usize) -> LinkRoute {
        match *self {
            Shape::Crossbar => LinkRoute::few([]),
            Shape::FatTree { leaf, up } => {
                let (below, above) = (from / leaf, to / leaf);
                if below == above {
                    return LinkRoute::few([]);
                }
                // All messages to a node take one upper switch, so that they stay in order.
                let over = to % up;
                let down = nodes.div_ceil(leaf) * up;
                LinkRoute::few([below * up + over, down + above * up + over])
            }
            // Half way round a ring, both ways are as long: nodes take one or the other.
            Shape::Torus { sides, share } => LinkRoute::torus(sides, from / share, to / share, from.is_multiple_of(2)),
            Shape::Dragonfly { routers, share } => {
                let (from, to) = (from / share, to / share);
                let (group, other) = (from / routers, to / routers);
                let groups = nodes.div_ceil(routers * share);
                let inside = |group: usize, a: usize, b: usize| (group * routers + a) * routers + b;
                if group == other {
                    let direct = inside(group, from % routers, to % routers);
                    return if from == to { LinkRoute::few([]) } else { LinkRoute::few([direct]) };
                }
                // The routers with the link between the two groups.
                let (leaves, enters) = (other % routers, group % routers);
                let between = groups * routers * routers + group * groups + other;
                let (first, last) = (inside(group, from % routers, leaves), inside(other, enters, to % routers));
                match (from % routers == leaves, to % routers == enters) {
                    (true, true) => LinkRoute::few([between]),
                    (true, false) => LinkRoute::few([between, last]),
                    (false, true) => LinkRoute::few([first, between]),
                    (false, false) => LinkRoute::few([first, between, last]),
                }
            }
        }
    }
}

/// The links of a message, one after the other.
#[derive(Debug)]
pub(super) struct LinkRoute {
    len: u32,
    left: Left,
}

/// The links that the message's head has not come to.
#[derive(Debug)]
enum Left {
    /// The links, and the place of the next.
    Few { links: [u32; 3], from: u32 },
    /// Dimension by dimension: where it is, and how far it goes, ahead or back; along which it goes at all.
    Torus { at: [u32; 3], steps: [i32; 3], along: [bool; 3] },
}

impl LinkRoute {
    // There are fewer than 2^32 links, as `is_small` says.
    fn few<const LEN: usize>(given: [usize; LEN]) -> Self {
        let mut links = [0; 3];
        links.iter_mut().zip(given).for_each(|(link, given)| *link = given as u32);
        LinkRoute { len: LEN as u32, left: Left::Few { links, from: 0 } }
    }

    /// The shorter way round each ring; half way round, ahead or back.
    fn torus(sides: [usize; 3], from: usize, to: usize, ahead_first: bool) -> Self {
        let place = |switch: usize| [switch % sides[0], switch / sides[0] % sides[1], switch / (sides[0] * sides[1])];
        let (at, to) = (place(from), place(to));
        let steps = [0, 1, 2].map(|axis| {
            let side = sides[axis];
            let ahead = (to[axis] + side - at[axis]) % side;
            if 2 * ahead < side + usize::from(ahead_first) { ahead as i32 } else { ahead as i32 - side as i32 }
        });
        let len = steps.iter().map(|steps| steps.unsigned_abs()).sum();
        LinkRoute { len, left: Left::Torus { at: at.map(|at| at as u32), steps, along: steps.map(|steps| steps != 0) } }
    }

    /// The number of its links, with those behind its head.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The directions in which its links lead, as [`Shape::direction`] numbers them.
    pub(super) fn directions(&self) -> [bool; 3] {
        match self.left {
            Left::Torus { along, .. } => along,
            Left::Few { .. } => [self.len > 0, false, false],
        }
    }

    /// The next link, in the shape of its network.
    pub(super) fn next(&mut self, shape: &Shape) -> Option<usize> {
        match (&mut self.left, shape) {
            (Left::Torus { at, steps, .. }, Shape::Torus { sides, .. }) => {
                let axis = steps.iter().position(|&steps| steps != 0)?;
                let forward = steps[axis] > 0;
                let switch = at[0] as usize + sides[0] * (at[1] as usize + sides[1] * at[2] as usize);
                let last = sides[axis] as u32 - 1;
                at[axis] = match (forward, at[axis]) {
                    (true, at) => {
                        if at == last {
                            0
                        } else {
                            at + 1
                        }
                    }
                    (false, at) => at.checked_sub(1).unwrap_or(last),
                };
                steps[axis] -= steps[axis].signum();
                Some(6 * switch + 2 * axis + usize::from(!forward))
            }
            (Left::Few { links, from }, _) if *from < self.len => {
                *from += 1;
                Some(links[*from as usize - 1] as usize)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(shape: &Shape, nodes: usize, from: usize, to: usize) -> Vec<usize> {
        let mut route = shape.route(nodes, from, to);
        let links: Vec<usize> = std::iter::from_fn(|| route.next(shape)).collect();
        assert_eq!((links.len(), route.next(shape)), (route.len(), None));
        links
    }

    /// Between any two nodes: known links, each once, not too many; and the way back is as long.
    #[test]
    fn routes_are_made_of_links() {
        for (shape, nodes, most) in [
            (Shape::Crossbar, 5, 0),
            (Shape::FatTree { leaf: 4, up: 2 }, 11, 2),
            (Shape::Torus { sides: [4, 3, 2], share: 2 }, 48, 2 + 1 + 1),
            (Shape::Dragonfly { routers: 3, share: 2 }, 18, 3),
        ] {
            let count = shape.links(nodes);
            for from in 0..nodes {
                for to in 0..nodes {
                    let links = route(&shape, nodes, from, to);
                    assert!(links.iter().all(|&link| link < count), "{shape:?}: {links:?}");
                    assert!(links.len() <= most, "{shape:?}: {links:?} from {from} to {to}");
                    let mut sorted = links.clone();
                    sorted.sort_unstable();
                    sorted.dedup();
                    assert_eq!(sorted.len(), links.len(), "{shape:?}: from {from} to {to}");
                    assert_eq!(links.len(), route(&shape, nodes, to, from).len(), "{shape:?}");
                    assert!(from != to || links.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_ring_is_left_on_its_shorter_side() {
        let ring = Shape::Torus { sides: [5, 1, 1], share: 1 };
        assert_eq!(route(&ring, 5, 4, 1), [6 * 4, 0]);
        assert_eq!(route(&ring, 5, 1, 4), [6 + 1, 1]);
        // Half way round, the nodes of a switch go both ways.
        let pair = Shape::Torus { sides: [2, 1, 1], share: 2 };
        assert_eq!([0, 1, 2, 3].map(|from| route(&pair, 4, from, (from + 2) % 4)), [[0], [1], [6], [6 + 1]]);
    }

    #[test]
    fn a_torus_is_about_a_cube() {
        for (nodes, share, sides) in [
            (1, 1, [1, 1, 1]),
            (64, 1, [4, 4, 4]),
            (512, 2, [8, 8, 4]),
            (2, 2, [1, 1, 1]),
            (27, 1, [3, 3, 3]),
            (11, 1, [3, 2, 2]),
        ] {
            assert_eq!(Shape::torus_of(nodes, share), Shape::Torus { sides, share }, "{nodes}");
        }
        for nodes in 1..3000 {
            let torus = Shape::torus_of(nodes, 2);
            assert!(torus.room() >= nodes && torus.room() <= 2 * nodes + 30, "{nodes}: {torus:?}");
            let Shape::Torus { sides: [z, _, x], .. } = torus else { unreachable!() };
            assert!(z <= 2 * x + 1, "{nodes}: {torus:?} is no cube");
        }
    }

    /// All pairs of a group, and all pairs of groups, have links of their own.
    #[test]
    fn a_dragonfly_joins_all_groups() {
        let shape = Shape::Dragonfly { routers: 4, share: 1 };
        let mut global: Vec<usize> = (0..5)
            .flat_map(|a| (0..5).map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
            .map(|(a, b)| route(&shape, 20, 4 * a + b % 4, 4 * b + a % 4)[0])
            .collect();
        global.sort_unstable();
        global.dedup();
        assert_eq!(global.len(), 20);
    }
}
